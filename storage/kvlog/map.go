package kvlog

import (
	"bytes"
	"context"
)

// A Map is key -> latest value over one log (storage 16). Its methods are safe
// for concurrent use.
type Map struct{ core *core }

// Open builds the index of log: from the key index in Options.Dir if that
// verifies, else from the whole log. Error: *[CorruptionError] for a record that
// does not decode, or what reading the log answered.
func Open(log Log, o Options) (*Map, error) {
	if o.CompactFloor == 0 {
		o.CompactFloor = DefaultCompactFloor
	}
	k := &cacheKind{}
	c, err := openCore(log, k, o, func(c *core) { k.core = c })
	if err != nil {
		return nil, err
	}
	return &Map{c}, nil
}

// Close stops compaction, waiting for its current step, and answers every
// later call with [ErrClosed]. Writes staged before still end. The log stays
// open: it is its owner's.
func (m *Map) Close() { m.core.close() }

// Reload reads the index anew: for the owner of a log that was cut or reset.
// Nothing may be staged.
func (m *Map) Reload() error { return m.core.reload() }

// Compact runs one pass (storage 16.6) and returns when it has ended. A pass
// that runs is waited for first.
func (m *Map) Compact(ctx context.Context) error { return m.core.compact(ctx) }

// Len counts the keys, lapsed ones that were not removed yet included.
func (m *Map) Len() int { return m.core.len() }

// LiveBytes is what the entries take in the log.
func (m *Map) LiveBytes() int64 { return m.core.liveBytes() }

// Base is the oldest offset the log holds.
func (m *Map) Base() uint64 { return m.core.log.Base() }

// Tail is the offset behind the newest committed record.
func (m *Map) Tail() uint64 { return m.core.log.Tail() }

// Applied is the offset below which every change is readable. The Observer
// has heard of all below, or is just hearing of the last.
func (m *Map) Applied() uint64 { return m.core.applied.Load() }

// Write judges w against everything staged and stages it; done hears the end
// once, perhaps before Write returns. w may be reused when Write returns.
//
// Errors that done may hear, besides those of the log: *[InvalidWriteError],
// [ErrClosed]. shardlog.ErrBusy asks to try again when the log has room.
func (m *Map) Write(w Write, done Done) {
	if err := w.check(); err != nil {
		done.Written(Result{}, err)
		return
	}
	if w.Op == Delete {
		m.remove(w, done)
		return
	}
	r := CacheRecord{Op: Put, ExpiresAtMillis: w.ExpiresAtMillis, Key: w.Key, Value: w.Value}
	o := &op{judge: judgePut, cond: w.Condition, done: done}
	o.block = sealBlock(r.Append(newBlock(cacheHeader + len(w.Key) + len(w.Value))))
	o.key = o.record()[cacheHeader : cacheHeader+len(w.Key)]
	o.after.present = true
	o.after.entry.expires = w.ExpiresAtMillis
	m.core.submit(o)
}

// WriteWait is Write and waits for the end.
func (m *Map) WriteWait(w Write) (Result, error) {
	end := make(answered, 1)
	m.Write(w, end)
	a := <-end
	return a.result, a.err
}

func (w *Write) check() error {
	if err := checkKey(w.Key); err != nil {
		return err
	}
	switch {
	case w.Op != Put && w.Op != Delete:
		return &InvalidWriteError{"a write is a put or a delete"}
	case w.ExpiresAtMillis < 0:
		return &InvalidWriteError{"a deadline is not negative"}
	case len(w.Key)+len(w.Value) > MaxEntryBytes:
		return &InvalidWriteError{"key and value together exceed 64 MiB"}
	}
	return nil
}

// holds judges what a key holds.
func (c Condition) holds(s state, nowMillis int64) bool {
	switch c.kind {
	case absent:
		return !s.live(nowMillis)
	case atVersion:
		return s.live(nowMillis) && s.entry.word == c.version
	default:
		return true
	}
}

// refused is the answer to a write that does not apply.
func refused(v view) Result {
	if !v.live(v.now) {
		return Result{}
	}
	return Result{Version: v.entry.word, HasVersion: true}
}

func judgePut(o *op, v view) bool {
	if !o.cond.holds(v.state, v.now) {
		o.result = refused(v)
		return false
	}
	o.after.entry.offset, o.after.entry.word = v.next, v.next
	o.result = Result{Applied: true, Version: v.next, HasVersion: true, Offset: v.next}
	return true
}

// A removal knows the value a delete will answer with.
type removal struct {
	m    *Map
	item Item
	read bool
}

func (m *Map) remove(w Write, done Done) {
	r := &removal{m: m}
	v, err := m.core.peek(w.Key)
	if err == nil && v.live(v.now) {
		// Before the lock: a positioned read may wait for the device.
		err = r.load(w.Key, v)
	}
	if err != nil {
		done.Written(Result{}, err)
		return
	}
	m.core.submit(&op{judge: judgeDelete, cond: w.Condition, removes: r, key: w.Key, done: done})
}

// load reads the value v shows, or a newer one.
func (r *removal) load(key []byte, v view) (err error) {
	if v.rests != nil {
		rec, err := ParseCacheRecord(v.rests.record())
		r.item = Item{Value: bytes.Clone(rec.Value), Version: v.entry.word, ExpiresAtMillis: v.entry.expires}
		r.read = err == nil
		return err
	}
	_, r.item, r.read, err = r.m.core.read(nil, key, v.entry)
	return err
}

func judgeDelete(o *op, v view) bool {
	switch {
	case !v.live(v.now):
		if !v.present || o.cond.kind != always {
			return false
		}
		// It was gone before the delete; the log says so now.
		o.expire()
		return true
	case !o.cond.holds(v.state, v.now):
		o.result = refused(v)
		return false
	}
	r := o.removes
	if !r.read || r.item.Version != v.entry.word {
		// A write came between. Once more, where none can.
		if o.refusal = r.load(o.key, v); o.refusal != nil {
			return false
		}
	}
	o.remove(Deleted)
	o.result = Result{Applied: true, Removed: r.item, HasRemoved: true, Offset: v.next}
	return true
}

// answered is a Done that somebody waits for.
type answered chan answer

type answer struct {
	result Result
	err    error
}

func (a answered) Written(r Result, err error) { a <- answer{r, err} }
