package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWatchByKeyAndPrefix(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 2)
	mustPut(t, c, "a/1", "before", TTL{})
	key := watch(t, c, WatchOptions{Key: []byte("a/1")})
	prefix := watch(t, c, WatchOptions{Prefix: []byte("a/")})
	all := watch(t, c, WatchOptions{})
	other := watch(t, c, WatchOptions{Shard: 1})

	v := mustPut(t, c, "a/1", "x", Millis(50))
	mustPut(t, c, "a", "short", TTL{})
	mustPut(t, c, "a/2", "", TTL{})
	if _, ok, err := c.Delete([]byte("a/2")); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, ok, err := c.Delete([]byte("a/2")); err != nil || ok {
		t.Fatal("deleted twice", err)
	}
	if r, err := c.PutIf([]byte("a/1"), nil, TTL{}, Absent()); err != nil || r.Applied {
		t.Fatal(r, err)
	}
	d.clock.advance(time.Second)

	changes := next(t, key, 2)
	wantChanges(t, changes, "updated a/1=x", "expired a/1")
	if ch := changes[0]; ch.Offset != v || ch.ExpiresAtMillis != 1_000_050 {
		t.Fatalf("%+v, want offset %d", ch, v)
	}
	if ch := changes[1]; ch.Value != nil || ch.ExpiresAtMillis != 0 || ch.Offset <= v {
		t.Fatalf("%+v", ch)
	}
	changes = next(t, prefix, 4)
	wantChanges(t, changes, "updated a/1=x", "updated a/2=", "deleted a/2", "expired a/1")
	if changes[1].Value == nil || changes[2].Value != nil {
		t.Fatalf("%+v", changes)
	}
	wantChanges(t, next(t, all, 5), "updated a/1=x", "updated a=short", "updated a/2=", "deleted a/2", "expired a/1")
	for _, w := range []*Watch{key, prefix, all, other} {
		quiet(t, w)
		if w.Resnapshot() || w.RetainedCount() != 0 {
			t.Fatalf("%+v", w)
		}
	}
	if key.ResumeOffset() != v || other.ResumeOffset() != 0 {
		t.Fatal(key.ResumeOffset(), other.ResumeOffset())
	}
	if info := c.Info(); info[0].Watches != 3 || info[1].Watches != 1 || info[0].Entries != 1 || info[0].Tail != changes[3].Offset+1 || info[0].Bytes <= 0 || info[0].LogBytes < info[0].Bytes {
		t.Fatalf("%+v", info)
	}
	if st := d.store.Stats(); st.Watches != 4 || st.LogEntries != 1 || st.LogBytes <= 0 || st.Puts != 4 || st.Deletes != 1 || st.Expired != 1 {
		t.Fatalf("%+v", st)
	}
}

func TestWatchRetained(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	for _, o := range []WatchOptions{{Retained: true}, {Retained: true, Key: []byte("a")}} {
		w := watch(t, c, o)
		if w.RetainedCount() != 0 {
			t.Fatalf("%d values in an empty cache", w.RetainedCount())
		}
		quiet(t, w)
	}
	mustPut(t, c, "b", "1", TTL{})
	mustPut(t, c, "ab", "2", TTL{})
	mustPut(t, c, "a", "3", TTL{})
	mustPut(t, c, "b", "4", TTL{})
	mustPut(t, c, "gone", "5", TTL{})
	mustPut(t, c, "lapsed", "6", Millis(1))
	if _, ok, _ := c.Delete([]byte("gone")); !ok {
		t.Fatal("not there")
	}
	d.clock.advance(2 * time.Millisecond)
	for range 3 {
		all := watch(t, c, WatchOptions{Retained: true})
		prefix := watch(t, c, WatchOptions{Retained: true, Prefix: []byte("a")})
		key := watch(t, c, WatchOptions{Retained: true, Key: []byte("a")})
		none := watch(t, c, WatchOptions{Retained: true, Key: []byte("gone")})
		if n := []int{all.RetainedCount(), prefix.RetainedCount(), key.RetainedCount(), none.RetainedCount()}; fmt.Sprint(n) != "[3 2 1 0]" {
			t.Fatal(n)
		}
		// In the order they were written, each under the offset of its put.
		values := next(t, all, 3)
		wantChanges(t, values, "updated ab=2", "updated a=3", "updated b=4")
		for _, v := range values {
			if item, ok, err := c.Get(0, v.Key); err != nil || !ok || item.Version != v.Offset {
				t.Fatalf("%+v is version %d (%v, %v)", v, item.Version, ok, err)
			}
		}
		wantChanges(t, next(t, prefix, 2), "updated ab=2", "updated a=3")
		wantChanges(t, next(t, key, 1), "updated a=3")
		for _, w := range []*Watch{all, prefix, key, none} {
			quiet(t, w)
		}
		mustPut(t, c, "ac", "live", TTL{})
		wantChanges(t, next(t, all, 1), "updated ac=live")
		wantChanges(t, next(t, prefix, 1), "updated ac=live")
		quiet(t, key)
		if _, ok, _ := c.Delete([]byte("ac")); !ok {
			t.Fatal("not there")
		}
		c.compact(t, 0)
		c = d.again(c)
	}
}

// Values that are many more bytes than one step reads arrive all, and so do
// changes that come while they are read.
func TestWatchRetainedInSteps(t *testing.T) {
	d := newDisk(t, Config{WatchQueue: 4})
	c := d.cache("c", 1)
	large, other := strings.Repeat("x", historyBytes/3), strings.Repeat("y", historyBytes/3)
	const keys = 20
	for i := range keys {
		mustPut(t, c, fmt.Sprint("k", i), large, TTL{})
	}
	w := watch(t, c, WatchOptions{Retained: true})
	for i := range keys {
		mustPut(t, c, fmt.Sprint("k", i), other, TTL{}) // more than the queue takes
	}
	var got []Change
	for len(got) < 2*keys {
		changes, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, changes...)
	}
	for i, ch := range got {
		want := large
		if i >= keys {
			want = other
		}
		if string(ch.Key) != fmt.Sprint("k", i%keys) || string(ch.Value) != want || i > 0 && ch.Offset <= got[i-1].Offset {
			t.Fatalf("change %d is %d %s of %d bytes", i, ch.Offset, ch.Key, len(ch.Value))
		}
	}
	quiet(t, w)
}

func TestWatchResumes(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	var offsets []uint64
	for i := range 5 {
		offsets = append(offsets, mustPut(t, c, fmt.Sprint("k", i%2), fmt.Sprint(i), TTL{}))
	}
	tail := offsets[4] + 1
	for from, want := range []string{
		"[updated k0=0 updated k1=1 updated k0=2 updated k1=3 updated k0=4]",
		"[updated k1=1 updated k0=2 updated k1=3 updated k0=4]",
		"[updated k0=2 updated k1=3 updated k0=4]",
		"[updated k1=3 updated k0=4]",
		"[updated k0=4]",
		"[]",
	} {
		w := watch(t, c, WatchOptions{From: uint64(from), HasFrom: true})
		changes, err := w.Poll()
		if err != nil || fmt.Sprint(shown(changes)) != want || w.Resnapshot() || w.ResumeOffset() != tail {
			t.Fatalf("from %d: %v, %v, resume %d", from, shown(changes), err, w.ResumeOffset())
		}
		quiet(t, w)
	}
	_, err := c.Watch(t.Context(), WatchOptions{From: tail + 1, HasFrom: true})
	var cursor *CursorError
	if !errors.As(err, &cursor) || cursor.Requested != tail+1 || cursor.Tail != tail {
		t.Fatal(err)
	}
	if st := d.store.Stats(); st.Watches != 6 {
		t.Fatalf("a refused watch stays: %+v", st)
	}
}

// Below what compaction kept, the current values come and are marked; at its
// edge the changes are still there.
func TestWatchResnapshot(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	for i := range 10 {
		mustPut(t, c, fmt.Sprint("k", i%3), fmt.Sprint(i), TTL{})
	}
	c.compact(t, 0)
	base := c.Info()[0].Base
	if base == 0 {
		t.Fatal("compaction reclaimed nothing")
	}
	last := mustPut(t, c, "k0", "new", TTL{})
	for _, from := range []uint64{0, base - 1} {
		w := watch(t, c, WatchOptions{From: from, HasFrom: true})
		if !w.Resnapshot() || w.RetainedCount() != 3 {
			t.Fatalf("from %d: resnapshot %v of %d", from, w.Resnapshot(), w.RetainedCount())
		}
		wantChanges(t, next(t, w, 3), "updated k1=7", "updated k2=8", "updated k0=new")
		quiet(t, w)
	}
	w := watch(t, c, WatchOptions{From: base, HasFrom: true})
	if w.Resnapshot() {
		t.Fatal("from the oldest offset kept the changes are there")
	}
	if changes := next(t, w, 1); changes[0].Offset != last {
		t.Fatalf("a copy of compaction is told as a change: %v", changes)
	}
	quiet(t, w)
}

func TestWatchLags(t *testing.T) {
	for name, cfg := range map[string]Config{
		"by count": {WatchQueue: 4},
		"by bytes": {WatchQueueBytes: 4 * int64(len("k0")+len("value 0"))},
	} {
		d := newDisk(t, cfg)
		c := d.cache("c", 1)
		w := watch(t, c, WatchOptions{})
		narrow := watch(t, c, WatchOptions{Capacity: 2, Prefix: []byte("k")})
		wide := watch(t, c, WatchOptions{Capacity: 1 << 40, Key: []byte("k1")})
		var offsets []uint64
		for i := range 8 {
			offsets = append(offsets, mustPut(t, c, fmt.Sprint("k", i%2), fmt.Sprint("value ", i), TTL{}))
		}
		for _, l := range []struct {
			w    *Watch
			kept int
		}{{w, 4}, {narrow, 2}} {
			got, err := ends(t, l.w)
			var lagged *LaggedError
			if !errors.As(err, &lagged) || len(got) != l.kept || lagged.ResumeFrom != offsets[l.kept] {
				t.Fatalf("%s: %v, %v", name, got, err)
			}
			rest := watch(t, c, WatchOptions{From: lagged.ResumeFrom, HasFrom: true})
			if all := append(got, next(t, rest, 8-l.kept)...); len(all) != 8 || all[7].Offset != offsets[7] {
				t.Fatalf("%s: %v", name, all)
			}
			if _, err := l.w.Poll(); !errors.As(err, &lagged) {
				t.Fatalf("%s: the end is not for good: %v", name, err)
			}
			l.w.Close()
			if _, err := l.w.Poll(); err != ErrWatchClosed {
				t.Fatal(err)
			}
		}
		wantChanges(t, next(t, wide, 4), "updated k1=value 1", "updated k1=value 3", "updated k1=value 5", "updated k1=value 7")
		if st := d.store.Stats(); st.Watches != 3 {
			t.Fatalf("%s: those that lagged are still registered: %+v", name, st)
		}
	}
}

// A change larger than the whole queue is taken by an empty one.
func TestWatchTakesALargeChange(t *testing.T) {
	d := newDisk(t, Config{WatchQueueBytes: 10})
	c := d.cache("c", 1)
	w := watch(t, c, WatchOptions{})
	for i := range 3 {
		value := strings.Repeat("x", 100+i)
		mustPut(t, c, "k", value, TTL{})
		wantChanges(t, next(t, w, 1), "updated k="+value)
	}
}

// While a reader is not through with history, a full queue costs it nothing:
// what came is read from the log.
func TestOverflowDuringHistoryIsReadAgain(t *testing.T) {
	d := newDisk(t, Config{WatchQueue: 4})
	c := d.cache("c", 1)
	n := 0
	put := func(times int) {
		for range times {
			mustPut(t, c, fmt.Sprint("k", n%3), fmt.Sprint(n), TTL{})
			n++
		}
	}
	put(10)
	w := watch(t, c, WatchOptions{HasFrom: true})
	read := 0
	for _, more := range []int{0, 5, 7, 0, 20, 0} {
		put(more)
		changes, err := w.history()
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range changes {
			if string(ch.Value) != fmt.Sprint(read) {
				t.Fatalf("%v, want value %d", ch, read)
			}
			read++
		}
	}
	for _, ch := range next(t, w, n-read) {
		if string(ch.Value) != fmt.Sprint(read) {
			t.Fatalf("%v, want value %d", ch, read)
		}
		read++
	}
	quiet(t, w)
}

// History that compaction reclaims under a slow reader ends the watch loudly,
// with an offset from which nothing is missed.
func TestHistoryReclaimedUnderTheReader(t *testing.T) {
	value := strings.Repeat("x", historyBytes/4)
	for _, o := range []WatchOptions{{HasFrom: true}, {Retained: true}} {
		d := newDisk(t, Config{WatchQueue: 2})
		c := d.cache("c", 1)
		for i := range 20 {
			mustPut(t, c, fmt.Sprint("k", i), value, TTL{})
		}
		w := watch(t, c, o)
		first, err := w.Poll()
		if err != nil || len(first) == 0 || len(first) > 10 {
			t.Fatalf("%d changes, %v", len(first), err)
		}
		got := map[string]string{}
		fold := func(changes []Change) {
			for _, ch := range changes {
				got[string(ch.Key)] = string(ch.Value)
			}
		}
		fold(first)
		last := first[len(first)-1].Offset
		for i := range 20 {
			mustPut(t, c, fmt.Sprint("k", i), "new", TTL{})
		}
		c.compact(t, 0)
		rest, err := ends(t, w)
		fold(rest)
		if len(rest) > 0 {
			last = rest[len(rest)-1].Offset
		}
		var lagged *LaggedError
		if !errors.As(err, &lagged) || lagged.ResumeFrom <= last && o.HasFrom {
			t.Fatalf("%v after offset %d", err, last)
		}
		w = watch(t, c, WatchOptions{From: lagged.ResumeFrom, HasFrom: true})
		if !w.Resnapshot() {
			t.Fatal("resumed without a resnapshot below the base")
		}
		fold(next(t, w, 20))
		for key, v := range got {
			if v != "new" {
				t.Fatalf("%s is still %d bytes", key, len(v))
			}
		}
	}
}
