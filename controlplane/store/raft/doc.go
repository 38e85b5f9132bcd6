// Package raft is the store of a control plane that replicates itself: each
// instance is a member of a Raft group and holds all metadata (control plane
// 12). One member alone is a group as well: the durable store of a single
// process.
//
// A write is a command. The leader stamps it with its clock, puts it into the
// log and applies it to the deterministic state of package memory when a
// majority has it on disk; a follower sends it to the leader. Every attempt of
// one write carries the same id, and the state answers a repeat with the first
// result, so that trying again is safe. Reads come from the state of the member
// that is asked, which may be some milliseconds behind; who must not be misled
// by that has the member catch up first.
//
// In the data directory lie raft.db, with the log, the ballot and a few marks,
// and snapshots of the state. A member that finds less there than it must have
// acknowledged refuses to start, and one whose directory is empty neither votes
// nor answers until it has caught up with the group: nobody is ever served from
// a store that lost something.
//
// No type of the Raft library leaves the package.
package raft
