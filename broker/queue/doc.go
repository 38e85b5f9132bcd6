// Package queue is groups: a cursor on one shard of a durable stream that
// workers share, and claims in memory on the records beyond it (broker 10).
//
// # What is on disk
//
// Two logs of a shard hold the latest of each key (package kvlog).
//
//	log           key                         value
//	groups        group                       flags u8 (bit 0: has a position,
//	                                          others zero), position u64,
//	                                          handed u64; big-endian
//	groups        group, 0x1F, decimal offset u32 big-endian: how often the
//	                                          record was handed out, if more than
//	                                          once or redriven;
//	                                          0xFFFFFFFF: given up, and finished
//	                                          although the position is below
//	dead-letters  group, 0x1F, decimal offset empty: given up; "redriven": put
//	                                          back in play, and still owed
//
// Everything below position is finished. Offsets below handed may have been
// handed out. Any other shape refuses the group: nothing is guessed.
//
// # Attempts survive
//
// A hand-out for the second time and more, and any of a redriven record, waits
// until its count is on disk.
// First hand-outs move the handed mark, and wait for it only where no mark of
// the group is on disk yet or where claims may have been lost. A group that is
// built again counts what lies below the mark, unfinished and without a count,
// as handed out once. So a record that takes the broker down with it comes to
// its end: a crash loses at most the count of its first delivery.
//
// # The path of a poll
//
// [Store.Poll] finds the group, takes claims from its tracker under the group's
// lock, and reads the records outside of it. What cannot be read, or does not
// fit the answer, goes back as if it had not been taken. Then counts and mark
// are made durable where they have to be. An empty poll waits in the order of
// arrival; an append, a settled record and a lapsed claim each wake one waiter,
// and a waiter that leaves something wakes the next.
//
// # The path of an ack
//
// [Store.Ack] finishes the record in memory. If the contiguous run of finished
// records moved the cursor, a write of the cursor follows, one in flight at a
// time, so that many acks share one; they are answered when it is on disk. An
// ack ahead of a gap is answered at once.
//
// # Locks
//
// A group's lock guards memory alone. Writes are decided under it and issued
// after it in the order of the decisions (outbox.go); their completions take it
// again. Order: Store.mu, shard.mu, group.mu; waiters.mu is taken last.
package queue
