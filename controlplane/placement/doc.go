// Package placement decides which broker leads and which follow each shard
// (control plane 7, 8). It is one pure function from what is known to one
// decision a shard: no clock, no randomness, no store, and the order of its
// input does not matter. Two instances that read the same decide the same.
//
// A node's place is found by rendezvous hashing, so a node that comes or goes
// changes only the shards that are better off with it or were on it. A shard
// that has a log never goes to a node that has not seen the log, unless an
// operator gives the log up.
//
// Begin at [Plan] (plan.go), which ranks the shards and decides about each:
// place.go for one without a leader that serves, move.go for one in motion,
// start.go for one at rest. What an operator asks for is operator.go.
package placement
