package stream

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Any changes read back as they were written.
func TestStateChangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) StateChange {
			c := StateChange{Delete: rapid.Bool().Draw(t, "delete"), Key: rapid.SliceOf(rapid.Byte()).Draw(t, "key")}
			if !c.Delete {
				c.Value = rapid.SliceOf(rapid.Byte()).Draw(t, "value")
			}
			return c
		})).Draw(t, "changes")
		encoded := AppendStateChanges(nil, changes)
		var got []StateChange
		if err := eachStateChange(encoded, func(c StateChange) { got = append(got, c) }); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(changes) {
			t.Fatalf("%v reads as %v", changes, got)
		}
		if cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut"); eachStateChange(encoded[:cut], func(StateChange) {}) == nil {
			t.Fatalf("%d of %d bytes are accepted", cut, len(encoded))
		}
		if eachStateChange(append(slices.Clone(encoded), 0), func(StateChange) {}) == nil {
			t.Fatal("a byte too much is accepted")
		}
	})
}

// Whatever is accepted is what its changes encode to.
func FuzzStateChanges(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add(AppendStateChanges(nil, []StateChange{{Key: []byte("k"), Value: []byte("v")}, {Delete: true, Key: []byte("d")}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var changes []StateChange
		if eachStateChange(b, func(c StateChange) { changes = append(changes, c) }) != nil {
			return
		}
		if again := AppendStateChanges(nil, changes); !bytes.Equal(again, b) {
			t.Fatalf("%x encodes as %x", b, again)
		}
	})
}
