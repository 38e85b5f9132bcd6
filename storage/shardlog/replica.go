package shardlog

import (
	"time"

	"github.com/felixlog/felix/storage/segment"
)

// Accepted is the newest generation this copy has accepted, and its leader, ""
// if that is not known.
func (l *Log) Accepted() (generation uint64, leader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.replication
	if r.ballot.Generation == r.replica.Generation {
		leader = r.ballot.Leader
	}
	return r.replica.Generation, leader
}

// AcceptGeneration promises, durably, to follow leader in generation:
// *GenerationError if a newer one, or another leader of the same one, was
// promised before. The ballot is on disk before the generation is raised
// (storage 5).
func (l *Log) AcceptGeneration(generation uint64, leader string) error {
	if err := l.refused(); err != nil {
		return err
	}
	l.side.Lock()
	defer l.side.Unlock()
	accepted, promised := l.Accepted()
	if generation < accepted || generation == accepted && promised != "" && promised != leader {
		return &GenerationError{Generation: generation, Accepted: accepted, Leader: leader, Promised: promised}
	}
	if generation == accepted && promised == leader {
		return nil
	}
	ballot := segment.Ballot{Generation: generation, Leader: leader}
	if err := l.saveSide(segment.BallotFile, ballot.Append(nil)); err != nil {
		return err
	}
	l.mu.Lock()
	l.replication.ballot = ballot
	l.mu.Unlock()
	return l.changeReplica(func(r *segment.Replica) { r.Generation = generation })
}

// CommitOffset is the offset below which the records are on a majority.
func (l *Log) CommitOffset() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replication.replica.CommitOffset
}

// commitSaveInterval is how often an advancing commit offset is saved where
// each append is not synced either.
const commitSaveInterval = time.Second

// AdvanceCommitOffset raises the commit offset. In on_commit mode it is on disk
// when the call returns; otherwise within a second, and when the log is closed.
func (l *Log) AdvanceCommitOffset(offset uint64) error {
	if err := l.refused(); err != nil {
		return err
	}
	if l.opts.Fsync == OnCommit {
		l.side.Lock()
		defer l.side.Unlock()
		if offset <= l.CommitOffset() {
			return nil
		}
		return l.changeReplica(func(r *segment.Replica) { r.CommitOffset = offset })
	}
	l.mu.Lock()
	r := &l.replication.replica
	r.CommitOffset = max(r.CommitOffset, offset)
	arm := !l.closed && r.CommitOffset > l.replication.saved && l.commitTimer.claim()
	l.mu.Unlock()
	if arm {
		l.arm(&l.commitTimer, commitSaveInterval, func() {
			if err := l.saveCommitOffset(); err != nil {
				l.opts.Logger.Warn("commit offset not saved", "log", l.opts.Name, "error", err)
			}
		})
	}
	return nil
}

// HoldRetentionAtCommit keeps, from now on and across restarts, every segment
// that holds an offset at or past the commit offset (storage 14).
func (l *Log) HoldRetentionAtCommit(hold bool) error {
	if err := l.refused(); err != nil {
		return err
	}
	l.side.Lock()
	defer l.side.Unlock()
	return l.changeReplica(func(r *segment.Replica) { r.HoldRetention = hold })
}

// saveCommitOffset writes the commit offset if the file is behind it.
func (l *Log) saveCommitOffset() error {
	l.side.Lock()
	defer l.side.Unlock()
	l.mu.Lock()
	behind := l.replication.saved < l.replication.replica.CommitOffset
	l.mu.Unlock()
	if !behind {
		return nil
	}
	return l.changeReplica(func(*segment.Replica) {})
}

// changeReplica writes the changed state before anyone sees it. The caller holds
// side.
func (l *Log) changeReplica(change func(*segment.Replica)) error {
	l.mu.Lock()
	next := l.replication.replica
	l.mu.Unlock()
	change(&next)
	if err := l.saveSide(segment.ReplicaFile, next.Append(nil)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.replication
	r.saved = next.CommitOffset
	next.CommitOffset = max(next.CommitOffset, r.replica.CommitOffset) // raised meanwhile
	r.replica = next
	return nil
}
