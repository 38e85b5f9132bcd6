package kvlog

import "context"

// Counters are sums over one log (storage 17). Their methods are safe for
// concurrent use.
type Counters struct{ core *core }

// OpenCounters is [Open] for counters; Options.Observer is not used.
func OpenCounters(log Log, o Options) (*Counters, error) {
	if o.CompactFloor == 0 {
		o.CompactFloor = DefaultCounterCompactFloor
	}
	o.Observer = nil
	c, err := openCore(log, counterKind{}, o, func(*core) {})
	if err != nil {
		return nil, err
	}
	return &Counters{c}, nil
}

// CounterDone hears of an add's end, once, under the rules of [Done].
type CounterDone interface {
	// Added tells the sum that includes the delta.
	Added(sum int64, err error)
}

// Add stages a delta, of 0 too: that makes a counter exist. done hears
// *[OverflowError] when the sum, with everything staged before, would leave the
// range of int64; nothing is written then.
func (c *Counters) Add(key []byte, delta int64, done CounterDone) {
	if err := checkKey(key); err != nil {
		done.Added(0, err)
		return
	}
	r := CounterRecord{Op: Delta, Value: delta, Key: key}
	o := &op{judge: judgeAdd, delta: delta}
	o.block = sealBlock(r.Append(newBlock(counterHeader + len(key))))
	o.key = o.record()[counterHeader:]
	o.done = addition{o, done}
	c.core.submit(o)
}

// AddWait is Add and waits for the end.
func (c *Counters) AddWait(key []byte, delta int64) (int64, error) {
	end := make(added, 1)
	c.Add(key, delta, end)
	a := <-end
	return a.sum, a.err
}

// Get returns a committed sum; false for a counter never added to.
func (c *Counters) Get(key []byte) (sum int64, ok bool, err error) {
	if err := c.core.catchUp(); err != nil {
		return 0, false, err
	}
	s, err := c.core.get(key)
	return int64(s.entry.word), s.present, err
}

// Len counts the counters.
func (c *Counters) Len() int { return c.core.len() }

// LiveBytes is what the log would take with one checkpoint a counter.
func (c *Counters) LiveBytes() int64 { return c.core.liveBytes() }

// Compact runs one pass: one checkpoint a counter, then everything older goes.
func (c *Counters) Compact(ctx context.Context) error { return c.core.compact(ctx) }

// Reload is [Map.Reload].
func (c *Counters) Reload() error { return c.core.reload() }

// Close is [Map.Close].
func (c *Counters) Close() { c.core.close() }

func judgeAdd(o *op, v view) bool {
	var sum int64
	if v.present {
		sum = int64(v.entry.word)
	}
	total, ok := add(sum, o.delta)
	if !ok {
		o.refusal = &OverflowError{Sum: sum, Delta: o.delta}
		return false
	}
	o.after = state{true, entry{offset: v.next, word: uint64(total), position: int64(v.next)}}
	if v.present {
		o.after.entry.offset = v.entry.offset
	}
	return true
}

// An addition answers an op with its sum.
type addition struct {
	op   *op
	done CounterDone
}

func (a addition) Written(_ Result, err error) {
	if err != nil {
		a.done.Added(0, err)
		return
	}
	a.done.Added(int64(a.op.after.entry.word), nil)
}

type added chan struct {
	sum int64
	err error
}

func (a added) Added(sum int64, err error) {
	a <- struct {
		sum int64
		err error
	}{sum, err}
}
