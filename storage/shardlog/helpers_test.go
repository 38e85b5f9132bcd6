package shardlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// testClock stands still until it is moved; what falls due then runs on the
// goroutine that moves it.
type testClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*testTimer
}

type testTimer struct {
	at time.Time
	f  func()
}

func newTestClock() *testClock { return &testClock{now: time.UnixMicro(1_700_000_000_000_000)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// step moves the time without running timers, backwards too.
func (c *testClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *testClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &testTimer{at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.timers, t)
		if i < 0 {
			return false
		}
		c.timers = slices.Delete(c.timers, i, i+1)
		return true
	}
}

func (c *testClock) armed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// advance moves the time and runs what falls due, once each.
func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*testTimer
	c.timers = slices.DeleteFunc(c.timers, func(t *testTimer) bool {
		if t.at.After(c.now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		t.f()
	}
}

// block is a record block of the payloads.
func block(payloads ...string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payloads)))
	for _, p := range payloads {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

func entry(payloads ...string) *Entry {
	return &Entry{Count: len(payloads), Block: block(payloads...)}
}

// numbered is an entry of n records of size bytes that say which they are.
func numbered(first uint64, n, size int) *Entry {
	payloads := make([]string, n)
	for i := range payloads {
		p := fmt.Sprintf("%d:", first+uint64(i))
		payloads[i] = p + string(bytes.Repeat([]byte{'.'}, max(size-len(p), 0)))
	}
	return entry(payloads...)
}

func numberedPrefix(offset uint64) string {
	return fmt.Sprintf("%d:", offset)
}

// outcome is what one completion heard.
type outcome struct {
	app Appended
	err error
}

// ledger records completions in the order they were called.
type ledger struct {
	mu   sync.Mutex
	seen []outcome
	more chan struct{}
}

func newLedger() *ledger { return &ledger{more: make(chan struct{}, 1)} }

func (g *ledger) Committed(a Appended, err error) {
	g.mu.Lock()
	g.seen = append(g.seen, outcome{a, err})
	g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

func (g *ledger) outcomes() []outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

// wait returns the first n outcomes, once there are as many.
func (g *ledger) wait(t testing.TB, n int) []outcome {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		if seen := g.outcomes(); len(seen) >= n {
			return seen
		}
		select {
		case <-g.more:
		case <-deadline:
			t.Fatalf("%d of %d completions came", len(g.outcomes()), n)
		}
	}
}

// fixture is a log on a file system that can fail and die.
type fixture struct {
	t      testing.TB
	mem    *fstest.Mem
	faults *fstest.Faults
	clock  *testClock
	opts   Options
	log    *Log
}

const testDir = "logs/t_ns_s_0"

// newFixture opens a fresh log.
func newFixture(t testing.TB, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t, mem: fstest.New(1), clock: newTestClock(), opts: o}
	f.opts.Name = "t/ns/s/0"
	f.opts.Clock = f.clock
	if f.opts.Fsync == Periodic && f.opts.FsyncInterval == 0 {
		f.opts.FsyncInterval = 250 * time.Millisecond
	}
	f.faults = fstest.NewFaults(f.mem)
	f.open()
	t.Cleanup(func() {
		f.faults.Clear()
		f.faults.LiftQuota()
		_ = f.log.Close()
	})
	return f
}

func (f *fixture) tryOpen() error {
	o := f.opts
	o.Metrics = NewMetrics()
	l, err := Open(f.faults, testDir, o)
	if err == nil {
		f.log = l
	}
	return err
}

func (f *fixture) open() {
	f.t.Helper()
	if err := f.tryOpen(); err != nil {
		f.t.Fatal(err)
	}
}

// on makes mem the disk, as after a restart, and opens the log there.
func (f *fixture) on(mem *fstest.Mem) {
	f.t.Helper()
	f.mem, f.faults = mem, fstest.NewFaults(mem)
	f.open()
}

func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.log.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

// gate is one that is opened when the test ends, however it does.
func (f *fixture) gate() *fstest.Gate {
	g := fstest.NewGate()
	f.t.Cleanup(g.Open)
	return g
}

// block makes one kind of operation wait.
func (f *fixture) block(op fstest.Op, path string) *fstest.Gate {
	g := f.gate()
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{op}, Path: path, Gate: g})
	return g
}

func (f *fixture) append(e *Entry) Appended {
	f.t.Helper()
	a, err := f.log.AppendWait(e)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// fill appends batches of n records each until there are batches of them.
func (f *fixture) fill(batches, n, size int) {
	f.t.Helper()
	for range batches {
		f.append(numbered(f.log.Claimed(), n, size))
	}
}

// record is one record as a reader saw it.
type record struct {
	offset  uint64
	payload string
	micros  uint64
}

// readAll reads from an offset to the tail in pages of at most maxBytes.
func readAll(l *Log, from uint64, maxBytes int) ([]record, error) {
	var all []record
	for from < l.Tail() {
		page, err := l.Read(from, maxBytes, 0)
		if err != nil {
			return all, err
		}
		if page.Next <= from {
			return all, fmt.Errorf("page at %d does not advance: next %d, tail %d", from, page.Next, l.Tail())
		}
		for i := range page.Batches {
			b := &page.Batches[i]
			for offset, payload := range b.All() {
				if offset >= from {
					all = append(all, record{offset, string(payload), b.TimestampMicros})
				}
			}
		}
		from = page.Next
		page.Release()
	}
	return all, nil
}

func (f *fixture) records() []record {
	f.t.Helper()
	all, err := readAll(f.log, f.log.Base(), 64<<10)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func (f *fixture) payloads() []string {
	f.t.Helper()
	var all []string
	for _, r := range f.records() {
		all = append(all, r.payload)
	}
	return all
}

// checkNumbered checks that the log holds the records from base to tail, each
// saying its own offset.
func (f *fixture) checkNumbered(base, tail uint64) {
	f.t.Helper()
	all := f.records()
	if f.log.Base() != base || f.log.Tail() != tail || uint64(len(all)) != tail-base {
		f.t.Fatalf("log [%d, %d) of %d records, want [%d, %d)", f.log.Base(), f.log.Tail(), len(all), base, tail)
	}
	for i, r := range all {
		want := fmt.Sprintf("%d:", base+uint64(i))
		if r.offset != base+uint64(i) || len(r.payload) < len(want) || r.payload[:len(want)] != want {
			f.t.Fatalf("offset %d holds %.20q, want %q", r.offset, r.payload, want)
		}
	}
}

func sizeOf(e *Entry) int64 {
	return int64(segment.BatchHeaderSize + len(e.Publisher) + len(e.Block) + len(e.Extra))
}

func list(t testing.TB, f fs.FS) []string {
	t.Helper()
	names, err := f.List(testDir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
