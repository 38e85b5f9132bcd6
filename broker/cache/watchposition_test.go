package cache

import (
	"errors"
	"fmt"
	"testing"
)

func wantPosition(t *testing.T, w *Watch, want uint64) {
	t.Helper()
	if at, ok := w.Position(); !ok || at != want {
		t.Fatalf("position %d (%v), want %d", at, ok, want)
	}
}

func TestWatchPosition(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	for i := range 3 {
		mustPut(t, c, fmt.Sprint("k", i), "v", TTL{})
	}
	live := watch(t, c, WatchOptions{Key: []byte("k1")})
	wantPosition(t, live, 3)
	history := watch(t, c, WatchOptions{HasFrom: true, From: 1})
	wantPosition(t, history, 1)
	state := watch(t, c, WatchOptions{Retained: true})
	wantPosition(t, state, 0)

	mustPut(t, c, "other", "v", TTL{})
	wantPosition(t, live, 4) // past what it does not match
	mustPut(t, c, "k1", "new", TTL{})
	mustPut(t, c, "other", "v", TTL{})
	wantPosition(t, live, 4) // and not past what is queued
	next(t, live, 1)
	wantPosition(t, live, 6)

	next(t, history, 5)
	wantPosition(t, history, 6)
	if changes, err := state.Poll(); err != nil || len(changes) != 3 {
		t.Fatal(changes, err)
	}
	wantPosition(t, state, 3)
	next(t, state, 3)
	wantPosition(t, state, 6)
}

// However far a watch came when it is left, another from its position tells
// the rest, once.
func TestWatchPositionMissesNothing(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	large := string(make([]byte, historyBytes/2))
	const count = 24
	for i := range count {
		mustPut(t, c, fmt.Sprint("k", i), large, TTL{})
	}
	for _, o := range []WatchOptions{{HasFrom: true}, {Retained: true}} {
		for polls := 0; ; polls++ {
			w := watch(t, c, o)
			seen := 0
			for range polls {
				changes, err := w.Poll()
				if err != nil {
					t.Fatal(err)
				}
				seen += len(changes)
			}
			at, ok := w.Position()
			if !ok {
				t.Fatal("unknown")
			}
			w.Close()
			for i, ch := range next(t, watch(t, c, WatchOptions{HasFrom: true, From: at}), count-seen) {
				if string(ch.Key) != fmt.Sprint("k", seen+i) {
					t.Fatalf("%d polls, %d seen, then %s from %d", polls, seen, ch.Key, at)
				}
			}
			if seen == count {
				break
			}
		}
	}
}

func TestWatchPositionAtTheEnd(t *testing.T) {
	d := newDisk(t, Config{WatchQueue: 2})
	c := d.cache("c", 1)
	w := watch(t, c, WatchOptions{})
	for range 3 {
		mustPut(t, c, "k", "v", TTL{})
	}
	wantPosition(t, w, 0)
	next(t, w, 2)
	wantPosition(t, w, 2)
	if _, err := w.Poll(); !errors.As(err, new(*LaggedError)) {
		t.Fatal(err)
	}
	wantPosition(t, w, 2)
	w.Close()
	if at, ok := w.Position(); ok {
		t.Fatalf("a closed watch stands at %d", at)
	}
}
