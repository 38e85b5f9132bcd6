package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// What was acknowledged is there after a restart, on a real disk too, in the
// shard it was written to and nowhere else.
func TestCacheSurvivesRestart(t *testing.T) {
	for name, d := range map[string]*disk{
		"memory": newDisk(t, Config{}),
		"disk":   newDiskOn(t, fs.OS(), t.TempDir(), Config{}),
	} {
		c := d.cache("c", 3)
		const keys = 30
		for i := range keys {
			if _, err := c.write(uint32(i%3), Write{Key: fmt.Append(nil, i), Value: fmt.Append(nil, "v", i)}); err != nil {
				t.Fatal(name, err)
			}
		}
		for range 2 {
			for i := range keys {
				for shard := range c.Shards() {
					item, found, err := c.Get(shard, fmt.Append(nil, i))
					if err != nil || found != (shard == uint32(i%3)) || found && string(item.Value) != fmt.Sprint("v", i) {
						t.Fatalf("%s: key %d in shard %d: %q %v, %v", name, i, shard, item.Value, found, err)
					}
				}
			}
			c = d.again(c)
		}
	}
}

// Nothing that was acknowledged is lost with the power, and nothing that was
// not is served as a whole that was never written.
func TestCacheSurvivesPowerLoss(t *testing.T) {
	for seed := range uint64(campaign(30, 1000)) {
		mem := fstest.New(seed)
		d := newDiskOn(t, mem, "/data", Config{})
		c := d.cache("c", 1)
		var mu sync.Mutex
		acked := map[string]string{}
		var wait sync.WaitGroup
		stop := make(chan struct{})
		for id := range 3 {
			wait.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					key, value := fmt.Sprint(id, "/", n%4), fmt.Sprint(n)
					if _, err := c.write(0, Write{Key: []byte(key), Value: []byte(value)}); err == nil {
						mu.Lock()
						acked[key] = value
						mu.Unlock()
					}
				}
			})
		}
		until(t, "some writes", func() bool { return c.Info()[0].Tail > 40 })
		mu.Lock()
		want := map[string]string{}
		for k, v := range acked {
			want[k] = v
		}
		after := mem.Crash(seed)
		mu.Unlock()
		close(stop)
		wait.Wait()
		c = newDiskOn(t, after, "/data", Config{}).cache("c", 1)
		for key, value := range want {
			item, found, err := c.Get(0, []byte(key))
			var is, was int
			_, errIs := fmt.Sscan(string(item.Value), &is)
			_, errWas := fmt.Sscan(value, &was)
			if err != nil || !found || errIs != nil || errWas != nil || is < was {
				t.Fatalf("seed %d: %s is %q (%v, %v), %q was acknowledged", seed, key, item.Value, found, err, value)
			}
		}
	}
}

// A damaged shard is refused by name, file and position; the others serve.
func TestDamagedShardIsRefused(t *testing.T) {
	mem := fstest.New(1)
	d := newDiskOn(t, mem, "/data", Config{})
	c := d.cache("c", 2)
	for shard := range uint32(2) {
		for i := range 3 {
			if _, err := c.write(shard, Write{Key: fmt.Append(nil, i), Value: []byte("value")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := "/data/caches/" + storage.DirName(storage.Key{Tenant: "t", Namespace: "n", Name: "c", Shard: 1})
	d.close()
	names, err := mem.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	damaged := false
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			damaged = true
			if err := mem.FlipBit(dir+"/"+name, 8*(segment.HeaderSize+segment.BatchHeaderSize+20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !damaged {
		t.Fatalf("no segment among %v", names)
	}
	d.open()
	c = d.store.NewCache(c.Name(), c.Options())
	d.caches = append(d.caches, c)
	err = c.Ready(t.Context(), 1)
	var unavailable *UnavailableError
	var corrupt *segment.CorruptionError
	if !errors.As(err, &unavailable) || unavailable.Reason != Failed || unavailable.Shard != 1 || !errors.As(err, &corrupt) {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), ".log") {
		t.Fatalf("%v does not name the file", err)
	}
	d.clock.advance(time.Minute)
	for _, f := range []func() error{
		func() error { _, _, err := c.Get(1, []byte("0")); return err },
		func() error { _, err := c.write(1, Write{Key: []byte("k")}); return err },
		func() error { _, err := c.Watch(t.Context(), WatchOptions{Shard: 1}); return err },
		func() error { return c.Info()[1].Err },
	} {
		if err := f(); !errors.As(err, &unavailable) || unavailable.Reason != Failed {
			t.Fatal(err)
		}
	}
	if err := c.Ready(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := get(t, c, "2"); got != `"value"` {
		t.Fatal(got)
	}
}

// A shard that cannot be opened for a reason that goes is opened by a request
// after it has gone.
func TestOpeningIsTriedAgain(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	d := newDiskOn(t, faults, "/data", Config{})
	rule := faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpMkdir}, Path: "caches", Err: errors.New("too many open files")})
	c := d.store.NewCache(Name{"t", "n", "c"}, Options{Durable: true})
	d.caches = append(d.caches, c)
	var unavailable *UnavailableError
	if err := c.Ready(t.Context(), 0); !errors.As(err, &unavailable) || unavailable.Reason != Failed {
		t.Fatal(err)
	}
	rule.Stop()
	if _, _, err := c.Get(0, nil); !errors.As(err, &unavailable) || unavailable.Reason != Failed {
		t.Fatalf("tried again at once: %v", err)
	}
	d.clock.advance(keyed.ReopenAfter)
	if _, _, err := c.Get(0, []byte("k")); !errors.As(err, &unavailable) || unavailable.Reason != Opening {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	mustPut(t, c, "k", "v", TTL{})
}

func TestNoStorage(t *testing.T) {
	s := NewStore(Config{}, newFakeClock())
	defer s.Close()
	c := s.NewCache(Name{"t", "n", "c"}, Options{Durable: true})
	defer c.End()
	var unavailable *UnavailableError
	_, _, err := c.Get(0, nil)
	for _, err := range []error{c.Ready(t.Context(), 0), err} {
		if !errors.As(err, &unavailable) || unavailable.Reason != NoStorage {
			t.Fatal(err)
		}
	}
}

func TestShardsThatAreNone(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 2)
	var shard *ShardError
	_, _, errGet := c.Get(2, []byte("k"))
	_, errWrite := c.write(7, Write{Key: []byte("k")})
	for _, err := range []error{errGet, errWrite, c.Ready(t.Context(), 2)} {
		if !errors.As(err, &shard) || shard.Shards != 2 {
			t.Error(err)
		}
	}
	var large *TooLargeError
	if _, err := c.write(0, Write{Key: []byte("k"), Value: make([]byte, 64<<20)}); !errors.As(err, &large) {
		t.Error(err)
	}
}

// A cache of the same name, registered while the old one still ends, waits for
// it and holds what it held.
func TestSameNameAgain(t *testing.T) {
	d := newDisk(t, Config{})
	var last *Cache
	for i := range 50 {
		c := d.store.NewCache(Name{"t", "n", "c"}, Options{Durable: true})
		if last != nil {
			go last.End()
		}
		last = c
		if i%3 == 0 {
			continue // ended while it is opened
		}
		if err := c.Ready(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got := get(t, c, "k"); i > 1 && got == "-" {
			t.Fatalf("round %d lost the value", i)
		}
		mustPut(t, c, "k", fmt.Sprint(i), TTL{})
	}
	last.End()
	if err := last.Ready(context.Background(), 0); err != ErrRemoved {
		t.Fatal(err)
	}
	if _, err := last.write(0, Write{Key: []byte("k")}); err != ErrRemoved {
		t.Fatal(err)
	}
	if _, _, err := last.Get(0, []byte("k")); err != ErrRemoved {
		t.Fatal(err)
	}
}

// Requests while a cache ends get their answer or [ErrRemoved].
func TestEndUnderLoad(t *testing.T) {
	for range campaign(20, 500) {
		d := newDisk(t, Config{})
		c := d.cache("c", 1)
		var wait sync.WaitGroup
		for id := range 4 {
			wait.Go(func() {
				for n := 0; ; n++ {
					key := fmt.Append(nil, id, n%5)
					_, errWrite := c.write(0, Write{Key: key, Value: key})
					_, _, errGet := c.Get(0, key)
					_, errAdd := c.add(0, "sum", 1)
					for _, err := range []error{errWrite, errGet, errAdd} {
						if err == ErrRemoved {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		until(t, "some writes", func() bool { return c.Info()[0].Tail > 20 })
		c.End()
		wait.Wait()
		d.close()
	}
}

// After a failed sync nothing unsure is shown: the write is unknown, later
// ones are refused, watches hear of neither, reads go on.
func TestFailedSync(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	d := newFaultyDisk(t, faults)
	c := d.cache("c", 1)
	mustPut(t, c, "k", "sure", TTL{})
	w := watch(t, c, WatchOptions{HasFrom: true})
	faults.FailSync("caches", 1)
	var failed *shardlog.SyncFailedError
	if _, err := c.write(0, Write{Key: []byte("k"), Value: []byte("unsure")}); !errors.As(err, &failed) || !failed.Unknown {
		t.Fatal(err)
	}
	if _, err := c.write(0, Write{Key: []byte("k"), Value: []byte("refused")}); !errors.As(err, &failed) || failed.Unknown {
		t.Fatal(err)
	}
	if got := get(t, c, "k"); got != `"sure"` {
		t.Fatal(got)
	}
	wantChanges(t, next(t, w, 1), "updated k=sure")
	quiet(t, w)
}

// A full disk refuses writes and keeps reads; when there is room again writes
// go on, with nothing in between seen by anybody.
func TestFullDisk(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	d := newDiskOn(t, faults, "/data", Config{})
	c := d.cache("c", 1)
	mustPut(t, c, "k", "before", TTL{})
	w := watch(t, c, WatchOptions{HasFrom: true})
	faults.SetQuota(0)
	var full *shardlog.FullError
	if _, err := c.write(0, Write{Key: []byte("k"), Value: []byte("refused")}); !errors.As(err, &full) {
		t.Fatal(err)
	}
	if got := get(t, c, "k"); got != `"before"` {
		t.Fatal(got)
	}
	faults.LiftQuota()
	mustPut(t, c, "k", "after", TTL{})
	wantChanges(t, next(t, w, 2), "updated k=before", "updated k=after")
	quiet(t, w)
}

// Shards that nobody uses cost no goroutine.
func TestIdleShardsHaveNoGoroutine(t *testing.T) {
	d := newDisk(t, Config{})
	before := runtime.NumGoroutine()
	c := d.cache("c", 200)
	for shard := range c.Shards() {
		if _, err := c.write(shard, Write{Key: []byte("k"), Value: []byte("v"), TTL: Millis(1 << 30)}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}
