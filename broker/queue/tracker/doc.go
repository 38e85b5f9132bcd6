// Package tracker holds the claims of one group on one shard (broker 10.2).
//
// It is pure: no locks, no I/O, and time is an argument. The caller serialises
// the calls, writes what has to be durable, and tells when that is done.
//
// # Offsets
//
// Everything below Committed is finished. Up to HighWater, every offset is
// either finished or unsettled: claimed by a worker, delayed by a nack, owed to
// the next worker, or burying, which is while its dead letter is written. From
// HighWater upward nothing was handed out, except what these rules let settle
// before its turn:
//
//   - records put back from the dead letters (Redrive) are in play beside the
//     cursor, also below Committed and among the finished;
//   - a rebuilt tracker has lost its claims, so that it takes settles of records
//     it has not handed out itself, as far as its first tail (wire 12.2).
//
// # Memory
//
// Unsettled records are values of a map, deadlines a heap whose outdated entries
// are dropped when they outnumber the others, finished offsets above the cursor
// are ranges, holders are stored once. 10,000 claims of 100 workers take 91 to
// 98 bytes each, all in (BenchmarkMemory). A round of hand-outs and acks
// allocates nothing.
//
// # Bounds
//
// New records are handed out while fewer than MaxInFlight are unsettled. What is
// redriven is unsettled whether or not there is room. At most MaxInFlight
// separate ranges are finished ahead of HighWater; a settle that needs one more
// is a StaleError with Retry. 1,024 members are remembered for Reclaim; of more,
// the one that reclaimed on the oldest connection is forgotten, and what was
// reserved for it is owed to everybody.
package tracker
