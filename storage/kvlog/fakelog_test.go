package kvlog

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// A fakeLog is a log in memory that commits when the test says so. It keeps
// the order of things of the real one: a failure first gives the offsets back,
// then tells those who claimed them.
type fakeLog struct {
	mu       sync.Mutex
	batches  []segment.Batch // committed
	pending  []fakeAppend
	claimed  uint64
	inline   bool   // commit within the append, as a log that does not sync may
	between  func() // called by fail between giving back and telling
	refuse   error  // of the next append
	appended int
}

type fakeAppend struct {
	batch   segment.Batch
	barrier bool
	done    shardlog.Completion
}

func (l *fakeLog) AppendAt(expected uint64, e *shardlog.Entry, done shardlog.Completion) (shardlog.Appended, error) {
	l.mu.Lock()
	if err := l.refuse; err != nil {
		l.refuse = nil
		l.mu.Unlock()
		return shardlog.Appended{}, err
	}
	if expected != l.claimed {
		defer l.mu.Unlock()
		return shardlog.Appended{}, &shardlog.OffsetMismatchError{Expected: expected, Tail: l.claimed}
	}
	b := segment.Batch{Kind: e.Kind, Count: uint32(e.Count), BaseOffset: l.claimed, Block: slices.Clone(e.Block)}
	l.claimed += uint64(e.Count)
	l.appended++
	l.pending = append(l.pending, fakeAppend{batch: b, done: done})
	inline := l.inline
	l.mu.Unlock()
	if inline {
		l.commit()
	}
	return shardlog.Appended{First: b.BaseOffset, Count: e.Count}, nil
}

func (l *fakeLog) Barrier(done shardlog.Completion) {
	l.mu.Lock()
	l.pending = append(l.pending, fakeAppend{barrier: true, done: done})
	l.mu.Unlock()
	l.commit()
}

// foreign commits a record that no projection wrote.
func (l *fakeLog) foreign(rec []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	block := sealBlock(append(newBlock(len(rec)), rec...))
	l.batches = append(l.batches, segment.Batch{Count: 1, BaseOffset: l.claimed, Block: block})
	l.claimed++
}

// commit commits what is pending.
func (l *fakeLog) commit() { l.commitN(1 << 30) }

func (l *fakeLog) commitN(n int) {
	l.mu.Lock()
	n = min(n, len(l.pending))
	done := slices.Clone(l.pending[:n])
	l.pending = slices.Delete(l.pending, 0, n)
	for i := range done {
		if !done[i].barrier {
			l.batches = append(l.batches, done[i].batch)
		}
	}
	l.mu.Unlock()
	for _, p := range done {
		p.done.Committed(shardlog.Appended{
			First: p.batch.BaseOffset, Count: int(p.batch.Count),
			Where: shardlog.Location{Segment: 1, Position: int64(p.batch.BaseOffset), Length: p.batch.Size()},
		}, nil)
	}
}

// fail fails what is pending.
func (l *fakeLog) fail(err error) {
	l.mu.Lock()
	failed := l.pending
	l.pending = nil
	l.claimed = l.tail()
	l.mu.Unlock()
	if l.between != nil {
		l.between()
	}
	for _, p := range failed {
		p.done.Committed(shardlog.Appended{First: p.batch.BaseOffset, Count: int(p.batch.Count)}, err)
	}
}

func (l *fakeLog) tail() uint64 {
	if len(l.batches) == 0 {
		return 0
	}
	return l.batches[len(l.batches)-1].End()
}

func (l *fakeLog) Tail() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail()
}

func (l *fakeLog) Claimed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimed
}

func (l *fakeLog) Read(from uint64, _, _ int) (*shardlog.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &shardlog.Page{Next: from}
	for _, b := range l.batches {
		if b.End() > from {
			p.Batches = append(p.Batches, b)
			p.Where = append(p.Where, shardlog.Location{Segment: 1, Position: int64(b.BaseOffset), Length: b.Size()})
			p.Next = b.End()
		}
	}
	return p, nil
}

func (l *fakeLog) ReadAll(from uint64, a, b int) (*shardlog.Page, error) { return l.Read(from, a, b) }

func (l *fakeLog) ReadAt(at shardlog.Location) (*shardlog.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		if int64(b.BaseOffset) == at.Position {
			return &shardlog.Page{Batches: []segment.Batch{b}, Where: []shardlog.Location{at}, Next: b.End()}, nil
		}
	}
	return nil, &shardlog.TrimmedError{}
}

func (l *fakeLog) Base() uint64   { return 0 }
func (l *fakeLog) Bytes() int64   { return 0 }
func (l *fakeLog) Flush() error   { return nil }
func (l *fakeLog) RollNow() error { return nil }

func (l *fakeLog) TrimBefore(uint64) error { return nil }
func (l *fakeLog) Segments() []shardlog.SegmentInfo {
	return []shardlog.SegmentInfo{{ID: 1, End: l.Tail()}}
}

// A fakeClock stands still until it is set.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []*fakeTimer
}

type fakeTimer struct {
	at time.Time
	f  func()
}

func newClock() *fakeClock { return &fakeClock{now: time.UnixMilli(1_000_000)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) millis() int64 { return c.Now().UnixMilli() }

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{c.now.Add(d), f}
	c.waits = append(c.waits, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.waits)
		c.waits = slices.DeleteFunc(c.waits, func(w *fakeTimer) bool { return w == t })
		return len(c.waits) < n
	}
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*fakeTimer
	c.waits = slices.DeleteFunc(c.waits, func(w *fakeTimer) bool {
		if w.at.After(c.now) {
			return false
		}
		due = append(due, w)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		go t.f()
	}
}

func (c *fakeClock) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waits)
}

// recorded keeps the ends of writes, in the order they were heard.
type recorded struct {
	mu   sync.Mutex
	ends []answer
}

func (r *recorded) Written(res Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, answer{res, err})
}

func (r *recorded) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ends)
}

func (r *recorded) last(t *testing.T) answer {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ends) == 0 {
		t.Fatal("not answered")
	}
	return r.ends[len(r.ends)-1]
}

func fakeMap(t *testing.T, l *fakeLog) (*Map, *fakeClock) {
	t.Helper()
	clock := newClock()
	m, err := Open(l, Options{Dir: "log", FS: fstest.New(1), Clock: clock, CompactFloor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, clock
}

func put(key, value string) Write { return Write{Key: []byte(key), Value: []byte(value)} }
func del(key string) Write        { return Write{Op: Delete, Key: []byte(key)} }

func (w Write) when(c Condition) Write { w.Condition = c; return w }
func (w Write) until(millis int64) Write {
	w.ExpiresAtMillis = millis
	return w
}

func wantValue(t *testing.T, m *Map, key, want string) {
	t.Helper()
	item, found, err := m.Get([]byte(key))
	if err != nil || !found || string(item.Value) != want {
		t.Fatalf("get %q = %q, %v, %v, want %q", key, item.Value, found, err, want)
	}
}

func wantAbsent(t *testing.T, m *Map, key string) {
	t.Helper()
	if item, found, err := m.Get([]byte(key)); err != nil || found {
		t.Fatalf("get %q = %q, %v, %v, want absent", key, item.Value, found, err)
	}
}

func same(a, b Result) bool { return reflect.DeepEqual(a, b) }
