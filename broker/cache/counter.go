package cache

import (
	"context"
	"time"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage/kvlog"
)

// countersWait bounds how long the first use of a shard's counters waits for
// their log.
const countersWait = 5 * time.Second

// CounterAdd adds delta to a counter of a cache on the log. A counter and a
// value of the same key are unrelated. done hears the sum once it is on the
// log; whoever repeats an addition whose outcome is unknown may count it twice
// (broker 9.5). The first use of a shard's counters opens their log and waits
// for it. Errors for done: [*NeedsLogError], [*CounterOverflowError],
// [*ShardError], [*UnavailableError], [ErrRemoved], and those of the log.
func (c *Cache) CounterAdd(shard uint32, key []byte, delta int64, done CounterDone) {
	sh, open, err := c.counters(shard)
	if err != nil {
		done.Added(0, err)
		return
	}
	a := logAdds.Get().(*logAdd)
	a.shard, a.done = sh, done
	a.phase.Store(calling)
	open.Index.Add(key, delta, a)
	if !a.phase.CompareAndSwap(calling, returned) {
		a.complete()
	}
}

// CounterGet reads a counter. One that was never written is not there, which
// differs from 0. Errors as CounterAdd.
func (c *Cache) CounterGet(shard uint32, key []byte) (int64, bool, error) {
	sh, open, err := c.counters(shard)
	if err != nil {
		return 0, false, err
	}
	sum, found, err := open.Index.Get(key)
	return sum, found, sh.outcome(err)
}

// counters finds a shard's counters, and opens them where nobody did.
func (c *Cache) counters(shard uint32) (*logShard, *keyed.Open[*kvlog.Counters], error) {
	if !c.Durable() {
		return nil, nil, &NeedsLogError{Cache: c.name, What: "counter"}
	}
	sh, err := c.logShard(shard)
	if err != nil {
		return nil, nil, err
	}
	if open := sh.counters.Opened(); open != nil {
		return sh, open, nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stop := c.store.clock.AfterFunc(countersWait, func() { cancel(sh.unavailable(Opening, nil)) })
	defer stop()
	if err := sh.counters.Ready(ctx); err != nil {
		return nil, nil, sh.outcome(err)
	}
	open, err := sh.counters.Use()
	return sh, open, sh.outcome(err)
}
