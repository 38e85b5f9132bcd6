//go:build !race

package cache

import "testing"

func TestAllocations(t *testing.T) {
	c, _ := newCache(Config{})
	write := func(w Write) { c.Write(0, w, ignored{}) }
	key, value := []byte("a key that is longer than thirty-two bytes"), make([]byte, 256)
	missing := []byte("another key longer than thirty-two bytes")
	if _, err := c.Put(key, value, Millis(1000)); err != nil {
		t.Fatal(err)
	}
	for _, op := range []struct {
		name string
		most float64
		f    func()
	}{
		{"get hit", 0, func() { _, _, _ = c.Get(0, key) }},
		{"get miss", 0, func() { _, _, _ = c.Get(0, missing) }},
		{"delete of nothing", 0, func() { write(Write{Op: Delete, Key: missing}) }},
		{"refused delete_if", 0, func() { write(Write{Op: Delete, Key: key, Condition: AtVersion(1)}) }},
		{"overwrite", 1, func() { write(Write{Key: key, Value: value}) }},
		{"overwrite with ttl", 1, func() { write(Write{Key: key, Value: value, TTL: Millis(5)}) }},
	} {
		if n := testing.AllocsPerRun(1000, op.f); n > op.most {
			t.Errorf("%s: %v allocations, at most %v", op.name, n, op.most)
		}
	}
}
