package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

const testRoot = "data/felix"

// A testClock stands still until it is moved.
type testClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*testTimer]bool
}

type testTimer struct {
	at time.Time
	f  func()
}

func newClock() *testClock {
	return &testClock{now: time.Unix(1_700_000_000, 0), timers: make(map[*testTimer]bool)}
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &testTimer{c.now.Add(d), f}
	c.timers[timer] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := c.timers[timer]
		delete(c.timers, timer)
		return was
	}
}

// advance moves the clock and runs what has become due.
func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*testTimer
	for timer := range c.timers {
		if !timer.at.After(c.now) {
			due = append(due, timer)
			delete(c.timers, timer)
		}
	}
	c.mu.Unlock()
	for _, timer := range due {
		timer.f()
	}
}

func testConfig() Config {
	return Config{Root: testRoot, Log: shardlog.Options{Fsync: shardlog.OnCommit, SegmentBytes: 4096}}
}

// open opens a store that is closed at the end of the test.
func open(t testing.TB, f fs.FS, change func(*Config)) *Store {
	t.Helper()
	cfg := testConfig()
	if change != nil {
		change(&cfg)
	}
	s, err := Open(f, cfg, Deps{Clock: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func key(i int) Key {
	return Key{Tenant: "acme", Namespace: "default", Name: fmt.Sprintf("s%d", i)}
}

func mustOpen(t testing.TB, s *Store, space Space, k Key, o LogOptions) *shardlog.Log {
	t.Helper()
	log, err := s.OpenLog(t.Context(), space, k, o)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// entry is a batch of count records of size bytes.
func entry(count, size int) *shardlog.Entry {
	block := binary.BigEndian.AppendUint32(nil, uint32(count))
	for range count {
		block = binary.BigEndian.AppendUint32(block, uint32(size))
		block = append(block, make([]byte, size)...)
	}
	return &shardlog.Entry{Kind: segment.Records, Count: count, Block: block}
}

func appendRecords(t testing.TB, log *shardlog.Log, count, size int) {
	t.Helper()
	if _, err := log.AppendWait(entry(count, size)); err != nil {
		t.Fatal(err)
	}
}

// damage flips a bit in the middle of the first segment of a shard.
func damage(t testing.TB, m *fstest.Mem, space Space, k Key) string {
	t.Helper()
	path := filepath.Join(shardDir(testRoot, space, k), segment.FileName(0))
	if err := m.FlipBit(path, (segment.HeaderSize+segment.BatchHeaderSize+10)*8); err != nil {
		t.Fatal(err)
	}
	return path
}

// within waits for a condition.
func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within 10 s: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}
