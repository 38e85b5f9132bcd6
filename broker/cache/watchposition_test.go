package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/felixlog/felix/broker/placed"
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

func wantMoved(t *testing.T, w *Watch) []Change {
	t.Helper()
	changes, err := ends(t, w)
	var moved *placed.NotServedError
	if !errors.As(err, &moved) || moved.Reason != placed.Moving {
		t.Fatal(err)
	}
	return changes
}

// A watch whose shard goes to another broker knows where to go on: behind what
// it was told, whether that came from the queue or from the log.
func TestWatchPositionOfAShardThatMoves(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.store.NewCache(Name{"t", "n", "moving"}, Options{Durable: true, Placed: true})
	d.caches = append(d.caches, c)
	if err := c.Assign(0, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	live, unread, history := watch(t, c, WatchOptions{}), watch(t, c, WatchOptions{}), watch(t, c, WatchOptions{HasFrom: true})
	for i := range 3 {
		mustPut(t, c, fmt.Sprint("k", i), "v", TTL{})
	}
	next(t, live, 3)
	late := watch(t, c, WatchOptions{HasFrom: true, From: 1})
	if err := c.Unassign(0, 2, "moves"); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Watch{live, unread, history} {
		wantMoved(t, w)
		wantPosition(t, w, 3)
	}
	from := uint64(1) // how much it read of the log before that closed is chance
	for _, change := range wantMoved(t, late) {
		from = change.Offset + 1
	}
	wantPosition(t, late, from)
}
