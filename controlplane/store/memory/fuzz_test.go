package memory

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/felixlog/felix/controlplane/store"
)

// FuzzApply applies arbitrary commands, one a line, to two states: neither may
// panic, both must stay whole and equal, and a snapshot must be readable.
func FuzzApply(f *testing.F) {
	_, commands := furnish(f)
	var all []byte
	for _, c := range commands {
		line, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
		all = append(append(all, line...), '\n')
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, input []byte) {
		limits := store.Limits{ChangesPage: 2, ChangesKept: 3}
		a, b := NewState(limits), NewState(limits)
		for line := range bytes.Lines(input) {
			var c Command
			if json.Unmarshal(line, &c) != nil {
				continue
			}
			equal(t, c.Op, a.Apply(c), b.Apply(c))
		}
		checkInvariants(t, a)
		if a.Stuck() != nil {
			return
		}
		snap := snapshotOf(t, a)
		if !bytes.Equal(snap, snapshotOf(t, b)) {
			t.Fatal("the states differ")
		}
		if err := b.Restore(snap); err != nil {
			t.Fatalf("restore: %v", err)
		}
		if again := snapshotOf(t, b); !bytes.Equal(snap, again) {
			t.Fatalf("restored:\n got %s\nwant %s", again, snap)
		}
	})
}

// FuzzRestore reads arbitrary snapshots: one that is taken must be whole.
func FuzzRestore(f *testing.F) {
	s, _ := furnish(f)
	f.Add(snapshotOf(f, s))
	f.Add(snapshotOf(f, NewState(store.Limits{})))
	f.Fuzz(func(t *testing.T, input []byte) {
		s := NewState(store.Limits{})
		if s.Restore(input) != nil {
			if s.tenants.has("t") || s.Clock() != 0 {
				t.Fatal("a refused snapshot left something behind")
			}
			return
		}
		checkInvariants(t, s)
		snap := snapshotOf(t, s)
		if err := s.Restore(snap); err != nil {
			t.Fatalf("restore what was restored: %v", err)
		}
		if again := snapshotOf(t, s); !bytes.Equal(snap, again) {
			t.Fatalf("restored:\n got %s\nwant %s", again, snap)
		}
	})
}
