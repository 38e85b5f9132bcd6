// Package placement decides which broker leads and which follow each shard
// (control plane 7, 8). It is one pure function from what is known to one
// decision a shard: no clock, no randomness, no store, and the order of its
// input does not matter. Two instances that read the same decide the same.
//
// A node's place is found by rendezvous hashing, so a node that comes or goes
// changes only the shards that are better off with it or were on it. A shard
// that has a log never goes to a node that has not seen the log, unless an
// operator gives the log up.
package placement
