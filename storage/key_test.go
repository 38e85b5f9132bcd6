package storage

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDirName(t *testing.T) {
	for _, test := range []struct {
		key  Key
		want string
	}{
		{Key{"acme", "default", "orders", 0}, "acme_default_orders_0-0d3aed4b998d2798"},
		{Key{"acme", "default", "orders", 3}, "acme_default_orders_3-0d3af04b998d2cb1"},
	} {
		if got := DirName(test.key); got != test.want {
			t.Errorf("DirName(%s) = %s, want %s", test.key, got, test.want)
		}
	}
	for _, test := range []struct{ name, want string }{
		{"", "_"}, {"..", "__"}, {"a.b", "a_b"}, {"größe", "gr__e"}, {"A-1_z", "A-1_z"},
		{strings.Repeat("x", 40), strings.Repeat("x", 32)}, {"a/b\\c\x00", "a_b_c_"},
	} {
		if got := readable(test.name); got != test.want {
			t.Errorf("readable(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

// TestDirNameIsAPathOfOneElement: no key leads out of the root, or into the
// directories of other spaces.
func TestDirNameIsAPathOfOneElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Key{rapid.String().Draw(t, "tenant"), rapid.String().Draw(t, "namespace"), rapid.String().Draw(t, "name"), rapid.Uint32().Draw(t, "shard")}
		name := DirName(k)
		if strings.ContainsAny(name, "/\\.\x00") || len(name) > 255 {
			t.Fatalf("DirName(%q) = %q", k, name)
		}
		for _, space := range Spaces() {
			if name == string(space) || name == lockName {
				t.Fatalf("DirName(%q) = %q is the name of something else", k, name)
			}
		}
	})
}
