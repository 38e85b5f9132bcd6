package cache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestEmptyValueIsAValue(t *testing.T) {
	c, _ := newCache(Config{})
	if got := get(t, c, "k"); got != "-" {
		t.Fatal(got)
	}
	mustPut(t, c, "k", "", TTL{})
	if got := get(t, c, "k"); got != `""` {
		t.Fatal(got)
	}
	item, ok, err := c.Delete([]byte("k"))
	if err != nil || !ok || item.Value == nil || len(item.Value) != 0 {
		t.Fatalf("%+v %v %v", item, ok, err)
	}
	if _, ok, _ := c.Delete([]byte("k")); ok {
		t.Fatal("deleted twice")
	}
}

// What a reader holds stays as it was; what a writer passed may be reused.
func TestValuesAreNotShared(t *testing.T) {
	c, _ := newCache(Config{})
	key, value := []byte("key"), []byte("first")
	if _, err := c.Put(key, value, TTL{}); err != nil {
		t.Fatal(err)
	}
	item, _, _ := c.Get(0, key)
	copy(key, "???")
	copy(value, "?????")
	mustPut(t, c, "key", "other", TTL{})
	if string(item.Value) != "first" || get(t, c, "key") != `"other"` {
		t.Fatalf("%q, %s", item.Value, get(t, c, "key"))
	}
	if cap(item.Value) != len(item.Value) {
		t.Fatal("an append to a value would write past it")
	}
}

func TestVersionsStartAtTheClock(t *testing.T) {
	c, clock := newCache(Config{})
	v := mustPut(t, c, "k", "v", TTL{})
	if v <= uint64(clock.Now().UnixMicro()) {
		t.Fatalf("version %d at %d", v, clock.Now().UnixMicro())
	}
	if w := mustPut(t, c, "other", "v", TTL{}); w != v+1 {
		t.Fatalf("version %d after %d", w, v)
	}
}

func TestCachesDoNotSeeEachOther(t *testing.T) {
	s := NewStore(Config{}, newFakeClock())
	a, b := s.NewCache(Name{"t", "n", "a"}, Options{Shards: 3}), s.NewCache(Name{"t", "n", "b"}, Options{})
	if a.Shards() != 3 || b.Shards() != 1 {
		t.Fatal(a.Shards(), b.Shards())
	}
	for i := range 200 {
		mustPut(t, a, fmt.Sprint(i), "a", TTL{})
		mustPut(t, b, fmt.Sprint(i), "b", TTL{})
	}
	a.End()
	a.End()
	for i := range 200 {
		if got := get(t, b, fmt.Sprint(i)); got != `"b"` {
			t.Fatal(got)
		}
	}
	check(t, s)
	if st := s.Stats(); st.Entries != 200 || st.Evictions != 0 {
		t.Fatalf("%+v", st)
	}
	key := []byte("1")
	_, _, errGet := a.Get(0, key)
	_, errPut := a.Put(key, key, TTL{})
	_, _, errDelete := a.Delete(key)
	_, errPutIf := a.PutIf(key, key, TTL{}, Absent())
	_, errDeleteIf := a.DeleteIf(key, 1)
	for _, err := range []error{errGet, errPut, errDelete, errPutIf, errDeleteIf} {
		if err != ErrRemoved {
			t.Fatalf("a removed cache answers %v", err)
		}
	}
	again := s.NewCache(a.Name(), Options{})
	if got := get(t, again, "1"); got != "-" {
		t.Fatalf("a cache of the same name starts with %s", got)
	}
}

func TestEntryLargerThanTheBound(t *testing.T) {
	c, _ := newCache(Config{MaxBytes: 1000})
	fits := strings.Repeat("x", 1000-EntryOverhead-1)
	mustPut(t, c, "k", "old", TTL{})
	_, err := c.Put([]byte("k"), []byte(fits+"x"), TTL{})
	var large *TooLargeError
	if !errors.As(err, &large) || large.Size != 1001 || large.Limit != 1000 {
		t.Fatal(err)
	}
	if got := get(t, c, "k"); got != `"old"` {
		t.Fatalf("a refused put left %s", got)
	}
	mustPut(t, c, "other", "gone for the large one", TTL{})
	mustPut(t, c, "k", fits, TTL{})
	if get(t, c, "other") != "-" || get(t, c, "k") == "-" {
		t.Fatal("the entry that fills the bound is not the only one")
	}
	check(t, c.store)
}

// Expired entries go before live ones; of those the least recently used, in
// exact order while there are no more than are compared.
func TestEvictionOrder(t *testing.T) {
	c, clock := newCache(Config{MaxEntries: 5})
	mustPut(t, c, "timed", "", Millis(10))
	for _, key := range []string{"a", "b", "c", "d"} {
		mustPut(t, c, key, "", TTL{})
	}
	get(t, c, "a")
	clock.advance(10 * time.Millisecond)
	mustPut(t, c, "e", "", TTL{})
	if st := c.store.Stats(); st.Evictions != 0 || st.Expired != 1 {
		t.Fatalf("an expired entry was spared: %+v", st)
	}
	mustPut(t, c, "f", "", TTL{}) // b is the least recently used now
	get(t, c, "c")
	mustPut(t, c, "g", "", TTL{}) // a, read before e and f were put, or d
	var left string
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if get(t, c, key) != "-" {
			left += key
		}
	}
	if left != "acefg" && left != "cdefg" {
		t.Fatalf("left are %s", left)
	}
	mustPut(t, c, "e", "overwritten", TTL{})
	if st := c.store.Stats(); st.Entries != 5 || st.Evictions != 2 {
		t.Fatalf("overwriting evicted: %+v", st)
	}
	check(t, c.store)
}

// A key that grows makes others go, never itself, even when it was used least.
func TestGrowingKeyIsKept(t *testing.T) {
	c, _ := newCache(Config{MaxBytes: 10 * (EntryOverhead + 10)})
	v := mustPut(t, c, "grows", "", TTL{})
	for i := range 8 {
		mustPut(t, c, fmt.Sprintf("key %03d", i), "123", TTL{})
	}
	r, err := c.PutIf([]byte("grows"), []byte(strings.Repeat("x", 5*EntryOverhead)), TTL{}, AtVersion(v))
	if err != nil || !r.Applied {
		t.Fatalf("%+v %v", r, err)
	}
	check(t, c.store)
}

// Under a working set that is read all the time and a flood of keys that are
// written once, the working set stays.
func TestEvictionSparesWhatIsUsed(t *testing.T) {
	c, _ := newCache(Config{MaxEntries: 1000, Seed: 3})
	for i := range 100 {
		mustPut(t, c, fmt.Sprint("hot ", i), "", TTL{})
	}
	for i := range 5000 {
		mustPut(t, c, fmt.Sprint("cold ", i), "", TTL{})
		get(t, c, fmt.Sprint("hot ", i%100))
	}
	hot := 0
	for i := range 100 {
		if get(t, c, fmt.Sprint("hot ", i)) != "-" {
			hot++
		}
	}
	// Without regard to use, e^-4 of them would be left.
	if hot < 90 {
		t.Fatalf("%d of 100 keys in use are left", hot)
	}
	check(t, c.store)
}
