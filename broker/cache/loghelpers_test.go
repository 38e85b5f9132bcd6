package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// campaign is the size of one: short, and up to long in longer ones.
func campaign(short, long int) int { return min(short*soak.Times(), long) }

// A disk is a store on a file system, which can be closed and opened again.
type disk struct {
	t       testing.TB
	fs      fs.FS
	root    string
	cfg     Config
	log     shardlog.Options
	journal int64 // bytes; -1 makes every log sync its own files
	clock   *fakeClock
	storage *storage.Store
	store   *Store
	caches  []*Cache
}

// newDisk opens a store in memory that syncs on commit and does not wait for
// the pacer, whose clock stands still.
func newDisk(t testing.TB, cfg Config) *disk { return newDiskOn(t, fstest.New(1), "/data", cfg) }

func newDiskOn(t testing.TB, f fs.FS, root string, cfg Config) *disk {
	t.Helper()
	return newDiskWith(t, f, root, cfg, 0)
}

// newFaultyDisk opens a store whose logs sync their own files alone.
func newFaultyDisk(t testing.TB, f fs.FS) *disk { return newDiskWith(t, f, "/data", Config{}, -1) }

func newDiskWith(t testing.TB, f fs.FS, root string, cfg Config, journal int64) *disk {
	t.Helper()
	if cfg.CompactionRate == 0 {
		cfg.CompactionRate = -1
	}
	d := &disk{t: t, fs: f, root: root, cfg: cfg, journal: journal, clock: newFakeClock()}
	d.log.Fsync = shardlog.OnCommit
	t.Cleanup(d.close)
	d.open()
	return d
}

func (d *disk) open() {
	d.t.Helper()
	var err error
	d.storage, err = storage.Open(d.fs, storage.Config{Root: d.root, Log: d.log, JournalBytes: d.journal}, storage.Deps{Clock: d.clock})
	if err != nil {
		d.t.Fatal(err)
	}
	d.cfg.Storage = d.storage
	d.store = NewStore(d.cfg, d.clock)
}

func (d *disk) close() {
	if d.store == nil {
		return
	}
	for _, c := range d.caches {
		c.End()
	}
	d.store.Close()
	if err := d.storage.Close(); err != nil {
		d.t.Errorf("close storage: %v", err)
	}
	d.caches, d.store = nil, nil
}

// cache opens a durable cache and waits for all of it.
func (d *disk) cache(name string, shards uint32) *Cache {
	d.t.Helper()
	c := d.store.NewCache(Name{"t", "n", name}, Options{Shards: shards, Durable: true})
	d.caches = append(d.caches, c)
	for shard := range c.Shards() {
		if err := c.Ready(d.t.Context(), shard); err != nil {
			d.t.Fatal(err)
		}
	}
	return c
}

// again closes everything and opens the cache anew.
func (d *disk) again(c *Cache) *Cache {
	d.t.Helper()
	d.close()
	d.open()
	return d.cache(c.Name().Name, c.Shards())
}

// index is the index of a shard that is open.
func (c *Cache) index(t testing.TB, shard uint32) *kvlog.Map {
	t.Helper()
	_, open, err := c.values(shard)
	if err != nil {
		t.Fatal(err)
	}
	return open.Index
}

// compact runs a pass of compaction.
func (c *Cache) compact(t testing.TB, shard uint32) {
	t.Helper()
	if err := c.index(t, shard).Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// watch watches, until the test ends.
func watch(t testing.TB, c *Cache, o WatchOptions) *Watch {
	t.Helper()
	w, err := c.Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// patience bounds what a test waits for.
const patience = 20 * time.Second

// next reads exactly n changes.
func next(t testing.TB, w *Watch, n int) []Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []Change
	for len(all) < n {
		changes, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("after %d of %d changes: %v", len(all), n, err)
		}
		all = append(all, changes...)
	}
	if len(all) > n {
		t.Fatalf("%d changes, want %d: %v", len(all), n, shown(all[n:]))
	}
	return all
}

// quiet fails if the watch has more.
func quiet(t testing.TB, w *Watch) {
	t.Helper()
	if changes, err := w.Poll(); err != nil || len(changes) > 0 {
		t.Fatalf("unexpected: %v, %v", shown(changes), err)
	}
}

// ends reads on to the end of a watch and returns why.
func ends(t testing.TB, w *Watch) ([]Change, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []Change
	for {
		changes, err := w.Next(ctx)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal("the watch does not end")
			}
			return all, err
		}
		all = append(all, changes...)
	}
}

// String is "offset op key=value".
func (c Change) String() string {
	s := strconv.FormatUint(c.Offset, 10) + " " + c.Op.String() + " " + string(c.Key)
	if c.Op == Updated {
		s += "=" + string(c.Value)
	}
	return s
}

// shown is changes without offsets.
func shown(changes []Change) []string {
	var out []string
	for _, c := range changes {
		_, rest, _ := strings.Cut(c.String(), " ")
		out = append(out, rest)
	}
	return out
}

// until waits for a condition that others make true.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// wantChanges compares changes by what they say, offsets aside.
func wantChanges(t testing.TB, got []Change, want ...string) {
	t.Helper()
	if fmt.Sprint(shown(got)) != fmt.Sprint(want) {
		t.Fatalf("changes %v, want %v", shown(got), want)
	}
}
