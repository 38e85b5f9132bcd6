package cache

import (
	"fmt"
	"testing"
	"time"
)

// Each watch hears once of each expired entry, told apart from a delete, in
// order, and never of one that was renewed; a restart in between changes
// nothing.
func TestWatchesHearOfExpiry(t *testing.T) {
	keys, watchers := campaign(600, 10_000), campaign(10, 50)
	const shards = 3
	for _, restart := range []bool{false, true} {
		d := newDisk(t, Config{WatchQueue: 3 * keys})
		c := d.cache("c", shards)
		name := func(i int) string { return fmt.Sprintf("%d/%d", i%7, i) }
		renewed := func(i int) bool { return i%5 == 0 }
		type reader struct {
			w    *Watch
			o    WatchOptions
			seen map[string]int
		}
		readers := make([]*reader, watchers)
		for i := range readers {
			r := &reader{o: WatchOptions{Shard: uint32(i % shards)}, seen: map[string]int{}}
			switch i % 3 {
			case 1:
				r.o.Prefix = fmt.Appendf(nil, "%d/", i%7)
			case 2:
				r.o.Key = []byte(name(i * 11 % keys))
				r.o.Shard = uint32(i * 11 % keys % shards)
			}
			r.w = watch(t, c, r.o)
			readers[i] = r
		}
		read := func(r *reader) {
			t.Helper()
			for {
				changes, err := r.w.Poll()
				if err != nil {
					t.Fatal(err)
				}
				if len(changes) == 0 {
					return
				}
				for _, ch := range changes {
					if ch.Offset < r.o.From {
						t.Fatalf("%v after offset %d", ch, r.o.From)
					}
					r.o.From = ch.Offset + 1
					switch ch.Op {
					case Deleted:
						t.Fatalf("nobody deleted: %v", ch)
					case Expired:
						r.seen[string(ch.Key)]++
					}
				}
			}
		}
		put := func(i int, ttl TTL) {
			if _, err := c.write(uint32(i%shards), Write{Key: []byte(name(i)), Value: []byte("v"), TTL: ttl}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range keys {
			put(i, Millis(uint64(100+i*1900/keys)))
		}
		d.clock.advance(90 * time.Millisecond)
		for i := range keys {
			if renewed(i) {
				put(i, TTL{})
			}
		}
		d.clock.advance(time.Second)
		d.store.sweep.pass()
		if restart {
			for _, r := range readers {
				read(r)
				r.o.HasFrom = true
			}
			c = d.again(c)
			for _, r := range readers {
				r.w = watch(t, c, r.o)
			}
		}
		d.clock.advance(900 * time.Millisecond) // all deadlines have passed
		expired := func() bool {
			d.clock.advance(sweepAgain)
			left := 0
			for shard := range uint32(shards) {
				left += c.index(t, shard).Len()
			}
			return left == (keys+4)/5
		}
		until(t, "all expired", expired)
		// The index knows of a removal a moment before the watches do.
		wrong := func() string {
			for i, r := range readers {
				read(r)
				for k := range keys {
					want := 0
					matched := matches([]byte(name(k)), r.w.match, r.w.byPrefix) && uint32(k%shards) == r.o.Shard
					if matched && !renewed(k) {
						want = 1
					}
					if n := r.seen[name(k)]; n != want {
						return fmt.Sprintf("restart %v: watch %d heard %d times that %s expired, want %d", restart, i, n, name(k), want)
					}
				}
			}
			return ""
		}
		for end := time.Now().Add(patience); wrong() != "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		if problem := wrong(); problem != "" {
			t.Fatal(problem)
		}
		for i := range keys {
			_, found, err := c.Get(uint32(i%shards), []byte(name(i)))
			if err != nil || found != renewed(i) {
				t.Fatalf("%s: found %v, %v", name(i), found, err)
			}
		}
	}
}

// A watch that resumes over an expiry hears of it once, and of what came
// before and after in order.
func TestResumeOverExpiry(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	mustPut(t, c, "k", "1", Millis(50))
	mustPut(t, c, "other", "1", TTL{})
	d.clock.advance(time.Second)
	until(t, "expired", func() bool { return c.index(t, 0).Len() == 1 })
	mustPut(t, c, "k", "2", TTL{})
	for range 2 {
		w := watch(t, c, WatchOptions{Key: []byte("k"), HasFrom: true})
		wantChanges(t, next(t, w, 3), "updated k=1", "expired k", "updated k=2")
		quiet(t, w)
		c = d.again(c)
	}
	if st := d.store.Stats(); st.LogEntries != 2 {
		t.Fatalf("%+v", st)
	}
}

// Once a read says expired, no later read returns the value: not after the
// wall clock was set back, and not after a restart with it set back once the
// expiry is on the log.
func TestClockSetBackRevivesNothing(t *testing.T) {
	for _, m := range modes() {
		c, clock, again := m.open(t)
		mustPut(t, c, "k", "v", Millis(100))
		mustPut(t, c, "later", "v", Millis(10_000))
		clock.advance(100 * time.Millisecond)
		if got := get(t, c, "k"); got != "-" {
			t.Fatalf("%s: %s at the deadline", m.name, got)
		}
		if c.Durable() {
			c.store.sweep.pass()
			until(t, "expired", func() bool { return c.index(t, 0).Len() == 1 })
		}
		clock.advance(-time.Hour)
		for range 2 {
			if got := get(t, c, "k"); got != "-" {
				t.Fatalf("%s: %s after the clock was set back", m.name, got)
			}
			if r, err := c.PutIf([]byte("later"), nil, TTL{}, Absent()); err != nil || r.Applied {
				t.Fatalf("%s: a live entry is absent: %+v, %v", m.name, r, err)
			}
			c = again(c)
		}
		if r, err := c.PutIf([]byte("k"), []byte("new"), TTL{}, Absent()); err != nil || !r.Applied {
			t.Fatalf("%s: %+v, %v", m.name, r, err)
		}
	}
}

// armed says that the next look has its time.
func (w *sweeper) armed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timer != nil
}

// One look removes at most its limit from a shard; the next one is sooner then.
func TestSweepIsBounded(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	const keys = 2*sweepLimit + 100
	for i := range keys {
		c.Write(0, Write{Key: fmt.Append(nil, i), Value: []byte("v"), TTL: Millis(1)}, ignored{})
	}
	mustPut(t, c, "stays", "v", TTL{})
	d.clock.advance(sweepEvery)
	for left := keys + 1 - sweepLimit; ; left -= sweepLimit {
		left = max(left, 1)
		until(t, fmt.Sprint(left, " left"), func() bool { return c.index(t, 0).Len() == left })
		until(t, "the timer is set", d.store.sweep.armed)
		if left == 1 {
			break
		}
		d.clock.advance(sweepAgain)
	}
	if st := d.store.Stats(); st.Expired != keys {
		t.Fatalf("%+v", st)
	}
}
