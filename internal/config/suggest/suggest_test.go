package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestClosest(t *testing.T) {
	known := []string{"quic_bind", "publish_window", "broker_publish_window_max", "pub_queue_depth", "log", "shards", "tls_cert", "tls_key"}
	for name, want := range map[string]string{
		"quic_bnid":               "quic_bind",
		"QUIC_BIND":               "quic_bind",
		"publish_windows":         "publish_window",
		"pubqueue_depth":          "pub_queue_depth",
		"queue_depth":             "pub_queue_depth",
		"pub_the_queue_big_depth": "pub_queue_depth",
		"shard":                   "shards",
		"lgo":                     "log",
		"tls_crt":                 "tls_cert",
		"xyz":                     "",
		"":                        "",
		"completely_different":    "",
	} {
		if got := Closest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := Sentence("shard", known); got != " (did you mean shards?)" {
		t.Errorf("sentence is %q", got)
	}
	if got := Sentence("xyz", known); got != "" {
		t.Errorf("sentence is %q", got)
	}
}

// TestEditsIsADistance checks what makes it one, and that one edit is one.
func TestEditsIsADistance(t *testing.T) {
	word := rapid.StringMatching(`[abc_]{0,7}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := edits(a, b)
		if d != edits(b, a) {
			t.Fatal("not symmetric")
		}
		if (d == 0) != (a == b) {
			t.Fatalf("%d edits between %q and %q", d, a, b)
		}
		if d > max(len(a), len(b)) || d < len(a)-len(b) || d < len(b)-len(a) {
			t.Fatalf("%d edits between %q and %q", d, a, b)
		}
		at := rapid.IntRange(0, len(a)).Draw(t, "at")
		if e := edits(a, a[:at]+"x"+a[at:]); e != 1 {
			t.Fatalf("one letter inserted into %q: %d edits", a, e)
		}
		if at+1 < len(a) && a[at] != a[at+1] {
			swapped := a[:at] + a[at+1:at+2] + a[at:at+1] + a[at+2:]
			if e := edits(a, swapped); e != 1 {
				t.Fatalf("%q to %q: %d edits", a, swapped, e)
			}
		}
	})
}
