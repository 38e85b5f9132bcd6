// Package stream holds a stream's shards: the replay ring, the subscriber
// registry, the shared envelope of a batch, the bounded queue of each
// subscription and, under a durable stream, the log of each shard.
//
// A batch becomes one [Envelope]: its record block is copied once, out of the
// publisher's buffer, behind room for a frame head. The shard gives it offsets
// ([Shard.Claim]), then makes it visible ([Shard.Apply]): ring append and the
// snapshot of subscribers are taken under one lock, so a subscriber that joins
// sees each batch exactly once, as history or live. Every subscriber is handed
// the same envelope, and a frame is encoded at most once per shape.
//
// The two steps are apart because a log goes between them: a durable batch is
// given to the log in lane order ([Shard.Append]) and applied in the same order
// once it is committed, one at a time ([Shard.Commit]).
//
// A reader of a durable stream registers first, then reads the closed range of
// the log below the ring page by page at its own pace, then the ring, then
// whatever its full queue had no room for meanwhile, and then live batches: no
// gap, no duplicate, and one page of memory (replay.go).
//
// Nothing here blocks a publisher. A full queue under [Block] parks the batch;
// the caller of Apply learns of it and is told when the last queue took it.
package stream
