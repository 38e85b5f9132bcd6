package keyed

import "testing"

type counting struct{ flushes int }

func (c *counting) Flush() { c.flushes++ }

// After a round each is told once for a run of its completions, and after the
// next one nobody who had no part in it.
func TestRound(t *testing.T) {
	var r Round
	a, b := &counting{}, &counting{}
	for _, done := range []any{a, a, b, b, "no flusher", a} {
		r.Add(done)
	}
	r.Over()
	if a.flushes != 2 || b.flushes != 1 {
		t.Fatalf("%d and %d flushes", a.flushes, b.flushes)
	}
	r.Add(b)
	r.Over()
	r.Over()
	if a.flushes != 2 || b.flushes != 2 {
		t.Fatalf("%d and %d flushes", a.flushes, b.flushes)
	}
}
