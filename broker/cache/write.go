package cache

import "github.com/felixlog/felix/broker/keyed"

// An Op is what a [Write] does to its key.
type Op uint8

const (
	// Put gives the key a value.
	Put Op = iota
	// Delete removes the key.
	Delete
)

// A Write is one change of one key. Key and Value are the caller's again when
// [Cache.Write] returns.
type Write struct {
	Op    Op
	Key   []byte
	Value []byte // of a put
	// TTL is a put's; each put sets its own deadline, and without a TTL the
	// entry has none, whatever it had before.
	TTL TTL
	// Condition is judged and the write applied in one step, after every
	// write to the key that came before.
	Condition Condition
}

// A WriteDone hears once how a write ended. If it is a [Flusher] too, its
// Flush follows.
type WriteDone interface {
	Written(Result, error)
}

// A CounterDone hears once how an addition to a counter ended: the sum with
// the delta in it. If it is a [Flusher] too, its Flush follows.
type CounterDone interface {
	Added(sum int64, err error)
}

// A Flusher among the completions that a log's committer calls is told when
// the round of commits is over, once each round, so that the answers of a
// round can leave together. Completions called by the goroutine that asked are
// not followed by it. Flusher values are compared with ==.
type Flusher = keyed.Flusher

// Write changes one key of a shard. In memory done is called before Write
// returns; on the log it is called in order by the log's committer once the
// write is durable, or before Write returns when nothing had to be written.
//
// Errors for done: [*InvalidTTLError], [*TooLargeError], [*ShardError],
// [*UnavailableError], [*placed.NotServedError], [ErrRemoved]. On the log also *kvlog.InvalidWriteError,
// *shardlog.FullError, *shardlog.IOError and shardlog.ErrBusy, after which
// nothing was written, and *shardlog.SyncFailedError, after which, if it says
// Unknown, the write may or may not be there at the next start.
func (c *Cache) Write(shard uint32, w Write, done WriteDone) {
	if c.Durable() {
		c.writeLog(shard, w, done)
		return
	}
	done.Written(c.writeMemory(shard, w))
}

func (c *Cache) writeMemory(shard uint32, w Write) (Result, error) {
	if w.Op == Delete {
		item, r, err := c.remove(shard, w.Key, w.Condition)
		r.Removed, r.HasRemoved = item, r.Applied
		return r, err
	}
	return c.put(shard, w.Key, w.Value, w.TTL, w.Condition)
}
