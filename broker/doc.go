// Package broker is the core of a Felix broker, in memory: it knows no
// sockets, no wire format and no files.
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
// The path of a cache operation is [Broker.Cache] and the handle's methods
// (package cache).
package broker
