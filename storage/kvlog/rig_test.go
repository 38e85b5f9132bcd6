package kvlog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// fataler is testing.TB and rapid's T.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

const shardDir = "caches/shard"

// A rig is a map over a real log over a file system that can lose power.
type rig struct {
	mem    *fstest.Mem
	faults *fstest.Faults
	clock  *fakeClock
	logs   shardlog.Options
	opts   Options
	log    *shardlog.Log
	m      *Map
	seen   *mirror
}

func newRig(t fataler, change func(*rig)) *rig {
	r := &rig{mem: fstest.New(1), clock: newClock()}
	r.logs = shardlog.Options{
		Name: "t/n/c/0", SegmentBytes: 4 << 10, Fsync: shardlog.OnCommit, Projection: true, Clock: r.clock,
	}
	r.opts = Options{CompactFloor: -1}
	if change != nil {
		change(r)
	}
	r.open(t)
	return r
}

// quiet closes the rig at the end of a test.
func (r *rig) cleanup(t *testing.T) *rig {
	t.Cleanup(func() {
		r.m.Close()
		_ = r.log.Close()
	})
	return r
}

func (r *rig) open(t fataler) {
	t.Helper()
	if err := r.tryOpen(); err != nil {
		t.Fatalf("open: %v", err)
	}
}

func (r *rig) tryOpen() (err error) {
	r.faults = fstest.NewFaults(r.mem)
	r.logs.Clock = r.clock
	if err := fs.MkdirDurable(r.faults, "caches"); err != nil {
		return err
	}
	if r.log, err = shardlog.Open(r.faults, shardDir, r.logs); err != nil {
		return err
	}
	r.opts.Dir, r.opts.FS, r.opts.Clock = shardDir, r.faults, r.clock
	r.seen = &mirror{}
	r.opts.Observer = r.seen
	if r.m, err = Open(r.log, r.opts); err != nil {
		_ = r.log.Close()
	}
	return err
}

// reopen closes in order and opens again.
func (r *rig) reopen(t fataler) {
	t.Helper()
	r.m.Close()
	if err := r.log.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	r.open(t)
}

// die ends the process, or with a seed the power, and cleans up what is left
// of it in memory.
func (r *rig) die(power bool, seed uint64) {
	var next *fstest.Mem
	if power {
		next = r.mem.Crash(seed)
	} else {
		next = r.mem.Kill()
	}
	r.m.Close()
	_ = r.log.Close() // on a dead disk
	r.mem = next
}

func (r *rig) write(t fataler, w Write) Result {
	t.Helper()
	res, err := r.m.WriteWait(w)
	if err != nil {
		t.Fatalf("write %+v: %v", w, err)
	}
	return res
}

func (r *rig) compact(t fataler) {
	t.Helper()
	if err := r.m.Compact(context.Background()); err != nil {
		t.Fatalf("compact: %v", err)
	}
}

// A mirror keeps the changes it hears of.
type mirror struct {
	mu      sync.Mutex
	changes []Change
}

func (s *mirror) Changed(c Change) {
	c.Key, c.Value = append([]byte(nil), c.Key...), append([]byte(nil), c.Value...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, c)
}

func (s *mirror) all() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Change(nil), s.changes...)
}

// allChanges reads the changes from an offset to the tail.
func allChanges(t fataler, m *Map, from uint64) []Change {
	t.Helper()
	var out []Change
	for {
		p, err := m.Changes(from, 1000)
		if err != nil {
			t.Fatalf("changes from %d: %v", from, err)
		}
		for _, c := range p.Changes {
			c.Key, c.Value = append([]byte(nil), c.Key...), append([]byte(nil), c.Value...)
			out = append(out, c)
		}
		next := p.Next
		p.Release()
		if next == from {
			return out
		}
		from = next
	}
}

// waitFor waits for a condition of another goroutine.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
