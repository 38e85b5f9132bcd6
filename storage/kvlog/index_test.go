package kvlog

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/internal/soak"
)

// A key of 100 bytes is 112 of memory by itself. The entry, its slot, the map
// and the free room of a map that has just grown come on top.
const maxBytesPerKey = 112 + 140

func TestMemoryPerKey(t *testing.T) {
	// SOAK=10 measures a million.
	keys := uint64(100_000 * soak.Times())
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	x := newIndex()
	for i := range keys {
		x.set(fmt.Sprintf("%0100d", i), entry{offset: i, word: i, length: 200})
	}
	per := (heap() - before) / keys
	t.Logf("%d bytes per key of 100 bytes, of %d keys", per, keys)
	if per > maxBytesPerKey {
		t.Errorf("%d bytes per key of 100 bytes, want at most %d", per, maxBytesPerKey)
	}
	runtime.KeepAlive(x)
}

func TestIndexMatchesAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, model := newIndex(), map[string]entry{}
		now := int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "ops") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				e := entry{
					offset: rapid.Uint64().Draw(t, "offset"), length: uint32(rapid.IntRange(1, 9).Draw(t, "length")),
					expires: rapid.SampledFrom([]int64{0, 1, 5, 5, 9, 1000}).Draw(t, "expires"),
				}
				x.set(key, e)
				model[key] = e
			case 2:
				x.remove(key)
				delete(model, key)
			case 3:
				now = rapid.Int64Range(now, 2000).Draw(t, "now")
				for {
					d, ok := x.popLapsed(now)
					if !ok {
						break
					}
					name := x.at(d.slot).key
					if e, held := model[name]; !held || e.expires != d.at {
						t.Fatalf("lapsed %q at %d, the model has %+v", name, d.at, e)
					}
					if rapid.Bool().Draw(t, "removal fails") {
						x.restoreDeadline(name)
						break
					}
					x.remove(name)
					delete(model, name)
				}
			case 4:
				next, ok := x.nextDeadline()
				for name, e := range model {
					if e.expires != 0 && (!ok || next.at > e.expires) {
						t.Fatalf("%q lapses at %d, the earliest is %d, %v", name, e.expires, next.at, ok)
					}
				}
			}
			checkIndex(t, x, model)
		}
	})
}

func checkIndex(t *rapid.T, x *index, model map[string]entry) {
	t.Helper()
	live, expiring := int64(0), 0
	for key, e := range model {
		if got := x.get([]byte(key)); !got.present || got.entry != e {
			t.Fatalf("%q: %+v, want %+v", key, got, e)
		}
		live += int64(e.length)
		if e.expires != 0 {
			expiring++
		}
	}
	if x.len() != len(model) || x.live != live || x.expiring != expiring {
		t.Fatalf("%d keys, %d live, %d expiring; want %d, %d, %d", x.len(), x.live, x.expiring, len(model), live, expiring)
	}
}

func TestDeadlinesOfOverwrittenEntriesStayBounded(t *testing.T) {
	x := newIndex()
	for i := range int64(100_000) {
		x.set("k", entry{expires: 1 + i%1000})
	}
	if n := len(x.deadlines); n > 2+staleAllowance {
		t.Fatalf("%d deadlines for one key", n)
	}
}
