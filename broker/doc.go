// Package broker is the core of a Felix broker: it knows no sockets and no wire
// format, and files only through package storage.
//
// The path of a publish, in the order of the code:
//
//  1. [Broker.Stream] resolves a name to a stream; its [stream.Shard] is the
//     handle that is kept and used from then on.
//  2. [Broker.Publish] asks the tenant's quota, then the byte budgets, then the
//     shard's lane for a place (packages admission and schedule).
//  3. The record block is copied into an envelope, once. A free lane runs the
//     publish at once on the caller's goroutine, a busy one queues it.
//  4. On the lane the batch is claimed (it gets its offsets) and applied (ring
//     and fanout, package stream), and its [Completion] is told.
//
// On a durable stream a log lies between the two: on the lane the batch gets
// its offsets and joins what the log gathers, and the lane is free. The log's
// committer writes and syncs the round, and hands its batches in offset order
// to their turn (stream/turn.go), where each is applied and answered; answers
// of one round that go to one [Flusher] leave together.
//
// The path of a cache operation is [Broker.Cache] and the handle's methods
// (package cache).
package broker
