package kvlog

import (
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// An op is one record on its way into the log, or the refusal of one.
type op struct {
	core *core
	// judge decides under stage whether the op is written: it completes block
	// and after, or result for a refusal and refusal for one with an error.
	judge   func(o *op, v view) (write bool)
	cond    Condition
	delta   int64
	removes *removal
	carries *carried
	asOf    int64 // of an expiry pass, Unix milliseconds

	key   []byte // of the caller, or a view of block once that is complete
	block []byte // the record block
	batch shardlog.Entry
	// quiet: a copy of what the key holds. It notifies nobody, and as the key
	// holds the same before and after, the staged view leaves it out.
	quiet bool
	// background: nobody waits for the answer, so a refusal does not wait for
	// what it rests on.
	background bool

	offset uint64
	after  state // what the key holds once this is committed

	judged  bool // to be written; of the caller's view until it is answered
	result  Result
	refusal error
	done    Done

	name string // the key, to keep; set before the append

	// mu of the core guards the rest.
	staging   bool // the append has not returned: its caller answers
	completed bool
	err       error
	waiters   []*op // refusals that rest on this one
}

// A view is what a key will hold when everything staged has committed.
type view struct {
	state
	rests *op    // the append this rests on, nil if all is committed
	next  uint64 // the offset a write gets
	now   int64  // Unix milliseconds
}

func (o *op) record() []byte { return o.block[blockPrefix:] }

// submit judges o against the staged view and appends it, or answers it. o is
// answered once, here or when the log has committed.
func (c *core) submit(o *op) {
	o.core = c
	c.stage.Lock()
	answer := c.stageOp(o)
	c.stage.Unlock()
	if answer {
		o.answer()
	}
}

// stageOp appends o or decides its answer, and reports whether the caller has
// to give it. stage is held.
func (c *core) stageOp(o *op) (answer bool) {
	for {
		v, err := c.view(o.key)
		if err != nil {
			o.err = err
			return true
		}
		o.result, o.refusal = Result{}, nil
		o.judged = o.judge(o, v)
		if !o.judged {
			o.err = o.refusal
			if v.rests == nil || o.background {
				return true
			}
			waits, again := c.wait(v.rests, o)
			if again {
				continue
			}
			return !waits
		}
		answer, again := c.append(o, v)
		if !again {
			return answer
		}
	}
}

// view is the staged view of key. stage is held.
func (c *core) view(key []byte) (view, error) {
	if err := c.catchUpStaged(); err != nil {
		return view{}, err
	}
	if c.flight.Load() == 0 {
		c.next = c.log.Claimed()
	}
	v, err := c.peek(key)
	v.next = c.next
	return v, err
}

// peek is view for who does not hold stage: of a moment, and without next.
func (c *core) peek(key []byte) (view, error) {
	v := view{now: c.nowMillis()}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if o, ok := c.staged[string(key)]; ok {
		v.state, v.rests = o.after, o
	} else {
		v.state = c.index.get(key)
	}
	return v, c.broken
}

// name is key as a string to keep, shared with what holds it already.
func (c *core) name(key []byte) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if o, ok := c.staged[string(key)]; ok {
		return o.name
	}
	return c.index.intern(key)
}

// wait has o answered when first is committed. If that is over, o is answered
// now, or judged again because first failed.
func (c *core) wait(first, o *op) (waits, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !first.completed {
		first.waiters = append(first.waiters, o)
		return true, false
	}
	return false, first.err != nil
}

// append appends o at the offset it was judged for. answer: the caller answers
// o. again: the log has moved, judge again. stage is held.
func (c *core) append(o *op, v view) (answer, again bool) {
	o.name = c.name(o.key)
	o.offset = v.next
	o.staging = true
	o.batch = shardlog.Entry{Kind: segment.Records, Count: 1, Block: o.block}
	_, err := c.log.AppendAt(v.next, &o.batch, o)
	if moved, ok := err.(*shardlog.OffsetMismatchError); ok {
		o.staging = false
		return c.moved(o, moved)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.staging = false
	if err != nil {
		o.err = err
		return true, false
	}
	c.next = v.next + 1
	if o.completed {
		return true, false
	}
	c.flight.Add(1)
	c.last = o
	if !o.quiet {
		c.staged[o.name] = o
	}
	return false, false
}

// moved handles a log that ends elsewhere than behind our newest append. It was
// cut back when a write failed: then that write and all behind it fail, and so
// does o, for it was judged against them. Or it has grown without us.
func (c *core) moved(o *op, e *shardlog.OffsetMismatchError) (answer, again bool) {
	if e.Tail >= c.next {
		c.next = e.Tail
		return false, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return false, true
	}
	o.err = e
	c.last.waiters = append(c.last.waiters, o)
	return false, false
}

// Committed applies o. The log calls in offset order, one call at a time.
func (o *op) Committed(a shardlog.Appended, err error) {
	c := o.core
	var f folded
	if err == nil {
		f = c.commit(o, a)
	}
	if f.notify && !o.quiet && c.opt.Observer != nil {
		c.opt.Observer.Changed(f.change)
	}
	if err == nil {
		// Before anybody hears of the end: who does finds the pass it started.
		c.maybeCompact()
	}
	c.mu.Lock()
	o.completed, o.err = true, err
	ours := !o.staging
	if ours {
		c.flight.Add(-1)
		if c.staged[o.name] == o {
			delete(c.staged, o.name)
		}
		if c.last == o {
			c.last = nil
		}
	}
	waiters := o.waiters
	o.waiters = nil
	c.mu.Unlock()
	if !ours {
		return // the append was made under stage: its caller answers, outside it
	}
	o.answer()
	for _, w := range waiters {
		if err != nil {
			w.err = err
		}
		w.answer()
	}
}

// commit puts a committed record into the index.
func (c *core) commit(o *op, a shardlog.Appended) folded {
	if c.applied.Load() != a.First {
		// A record that is not ours lies before it.
		if err := c.replay(a.First, c.opt.Observer); err != nil {
			c.fail(err)
		}
	}
	c.mu.Lock()
	f, err := c.apply(o.name, o.record(), a.First, a.Where)
	c.applied.Store(a.First + uint64(a.Count))
	c.mu.Unlock()
	if err != nil {
		c.fail(err)
	}
	return f
}

func (o *op) answer() {
	if o.err != nil {
		o.done.Written(Result{}, o.err)
		return
	}
	o.done.Written(o.result, nil)
}
