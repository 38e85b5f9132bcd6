// Package stream holds a stream's shards in memory: the replay ring, the
// subscriber registry, the shared envelope of a batch and the bounded queue of
// each subscription.
//
// A batch becomes one [Envelope]: its record block is copied once, out of the
// publisher's buffer, behind room for a frame head. The shard gives it offsets
// ([Shard.Claim]), then makes it visible ([Shard.Apply]): ring append and the
// snapshot of subscribers are taken under one lock, so a subscriber that joins
// sees each batch exactly once, as history or live. Every subscriber is handed
// the same envelope, and a frame is encoded at most once per shape.
//
// The two steps are apart because a log goes between them: a durable batch is
// claimed in lane order and applied in the same order once it is on disk.
//
// Nothing here blocks a publisher. A full queue under [Block] parks the batch;
// the caller of Apply learns of it and is told when the last queue took it.
package stream
