//go:build !race

package cache

import (
	"fmt"
	"testing"
)

// A get on the log allocates the value it returns and nothing else, and a
// change costs as much however many watches do not match it.
func TestLogAllocations(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	key, missing := []byte("a key that is longer than thirty-two bytes"), []byte("another key longer than thirty-two bytes")
	if _, err := c.Put(key, make([]byte, 256), Millis(1000)); err != nil {
		t.Fatal(err)
	}
	for _, op := range []struct {
		name string
		most float64
		f    func()
	}{
		{"get hit", 1, func() { _, _, _ = c.Get(0, key) }},
		{"get miss", 0, func() { _, _, _ = c.Get(0, missing) }},
	} {
		if n := testing.AllocsPerRun(1000, op.f); n > op.most {
			t.Errorf("%s: %v allocations, at most %v", op.name, n, op.most)
		}
	}

	var h hub
	for i := range 1000 {
		w := &Watch{match: fmt.Sprint("other ", i), byPrefix: i%2 == 0, slot: -1, joined: true, capacity: 1024, maxBytes: 1 << 30, wake: make(chan struct{}, 1)}
		if err := h.join(w); err != nil {
			t.Fatal(err)
		}
	}
	change := Change{Key: key, Value: make([]byte, 256)}
	if n := testing.AllocsPerRun(1000, func() { h.changed(change) }); n > 0 {
		t.Errorf("a change nobody watches: %v allocations", n)
	}
	for range 1000 {
		w := &Watch{match: string(key), slot: -1, joined: true, capacity: 1 << 20, maxBytes: 1 << 30, wake: make(chan struct{}, 1)}
		w.queue = make([]Change, 0, 300)
		if err := h.join(w); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(200, func() { h.changed(change) }); n > 1 {
		t.Errorf("a change that 1000 watch: %v allocations, at most 1", n)
	}
}
