package stream

import (
	"sync"
	"testing"
)

// A step is a turn that may wait.
type step struct {
	Turn
	id    int
	waits bool
	seen  *[]int
}

func (s *step) Take() bool {
	*s.seen = append(*s.seen, s.id)
	return s.waits
}

// Turns are taken in order, those behind one that waits after it goes on.
func TestTurnsKeepTheirOrder(t *testing.T) {
	sh := newShard(t, Config{})
	d := newDurable(sh)
	d.current.Store(&openedLog{})
	var seen []int
	push := func(id int, waits bool) {
		if !d.turns.reserve(d, nil) {
			t.Fatal("no place")
		}
		s := &step{id: id, waits: waits, seen: &seen}
		s.Task = s
		d.turns.push(&s.Turn)
	}
	want := func(n, pending int) {
		t.Helper()
		for i, id := range seen {
			if i != id {
				t.Fatalf("%v", seen)
			}
		}
		if len(seen) != n || d.turns.count() != pending {
			t.Fatalf("%d taken, %d pending, want %d and %d", len(seen), d.turns.count(), n, pending)
		}
	}
	push(0, false)
	want(1, 0)
	push(1, true)
	push(2, false)
	push(3, true)
	push(4, false)
	want(2, 4)
	settled := d.turns.settled()
	d.turns.resume()
	want(4, 2)
	select {
	case <-settled:
		t.Fatal("settled with two pending")
	default:
	}
	d.turns.resume()
	want(5, 0)
	<-settled
	<-d.turns.settled()
}

// What waits for a place is told when half of them are free, and when the log
// is open.
func TestPlacesAreBounded(t *testing.T) {
	d := newDurable(newShard(t, Config{}))
	var s settlement
	if d.turns.reserve(d, &s) {
		t.Fatal("a place before the log is open")
	}
	d.current.Store(&openedLog{})
	d.turns.goOn()
	if s.n.Load() != 1 {
		t.Fatal("not told that the log is open")
	}
	for range maxPending {
		if !d.turns.reserve(d, &s) {
			t.Fatal("no place")
		}
	}
	if d.turns.reserve(d, &s) {
		t.Fatal("a place too many")
	}
	d.turns.done(maxPending/2 - 1)
	if s.n.Load() != 1 {
		t.Fatal("told too early")
	}
	d.turns.done(1)
	if s.n.Load() != 2 {
		t.Fatal("not told")
	}
}

type flushes struct{ n int }

func (f *flushes) Flush() { f.n++ }

// Each flusher is flushed once a round, however many answers it got and
// however many flushers there are.
func TestFlushersAreFlushedOnce(t *testing.T) {
	var turns turns
	all := make([]flushes, 50)
	for range 3 {
		for i := range all {
			turns.answered(&all[i])
		}
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(turns.flush)
	}
	both.Wait()
	turns.flush()
	for i := range all {
		if all[i].n != 1 {
			t.Fatalf("flusher %d: %d times", i, all[i].n)
		}
	}
}
