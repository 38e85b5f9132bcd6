package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A leg is one watch of a join: how it began, what it was given, where it
// ended. A join whose watch lagged goes on with another leg.
type leg struct {
	o          WatchOptions
	resume     uint64
	resnapshot bool
	values     []Change
	changes    []Change
	until      uint64 // all that matches below was given
}

// Watches that join while keys are put, deleted, expired and compacted see a
// snapshot and every later change once and in order, or a loud end from which
// they resume.
func TestJoinUnderLoad(t *testing.T) {
	joins := campaign(400, 10_000)
	d := newDisk(t, Config{WatchQueue: 64})
	c := d.cache("c", 1)
	truth := watch(t, c, WatchOptions{HasFrom: true})
	truth.capacity, truth.maxBytes = 1<<30, 1<<40

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var stop atomic.Bool
	var writers, joiners sync.WaitGroup
	for id := range uint64(3) {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(id, 1))
			for !stop.Load() {
				key := fmt.Appendf(nil, "%c%d", 'a'+rune(rng.IntN(3)), rng.IntN(5))
				w := Write{Op: Put, Key: key, Value: fmt.Append(nil, key, rng.Uint64())}
				switch rng.IntN(8) {
				case 0:
					w = Write{Op: Delete, Key: key}
				case 1:
					w.TTL = Millis(1 + rng.Uint64N(400))
				case 2:
					d.clock.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
				}
				if _, err := c.write(0, w); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Go(func() {
		for !stop.Load() {
			if err := c.index(t, 0).Compact(ctx); err != nil {
				t.Error(err)
				return
			}
			for range 200 {
				if _, err := c.write(0, Write{Key: []byte("z"), Value: []byte("z")}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	var left atomic.Int64
	left.Store(int64(joins))
	legs := make([][]leg, 4)
	for id := range legs {
		joiners.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(id), 2))
			for left.Add(-1) >= 0 {
				one, err := join(ctx, c, rng)
				if err != nil {
					t.Error(err)
					return
				}
				legs[id] = append(legs[id], one...)
			}
		})
	}
	joiners.Wait()
	stop.Store(true)
	writers.Wait()
	tail := c.Info()[0].Tail
	var all []Change
	for {
		changes, err := truth.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) == 0 {
			break
		}
		all = append(all, changes...)
	}
	if truth.Resnapshot() || !slices.IsSortedFunc(all, func(a, b Change) int { return int(a.Offset) - int(b.Offset) }) {
		t.Fatal("the truth is none")
	}
	if c.Info()[0].Base == 0 {
		t.Fatal("nothing was compacted")
	}
	kinds, h := map[string]int{}, newHistory(all)
	for _, l := range slices.Concat(legs...) {
		if err := l.check(h); err != nil {
			t.Fatalf("watch %+v, resumed at %d, read until %d of %d: %v", l.o, l.resume, l.until, tail, err)
		}
		kinds[fmt.Sprintf("from %v, retained %v, resnapshot %v", l.o.HasFrom, l.o.Retained, l.resnapshot)]++
	}
	t.Logf("%d changes; %v", len(all), kinds)
}

// join watches some keys from somewhere, until it is a while past the tail it
// found.
func join(ctx context.Context, c *Cache, rng *rand.Rand) ([]leg, error) {
	var o WatchOptions
	switch rng.IntN(3) {
	case 0:
		o.Key = []byte("b3")
	case 1:
		o.Prefix = []byte("b")
	}
	tail := c.Info()[0].Tail
	switch rng.IntN(3) {
	case 0:
		o.HasFrom, o.From = true, tail-min(tail, rng.Uint64N(1000))
	case 1:
		o.Retained = true
	}
	o.Capacity = 1 + rng.IntN(64)
	var legs []leg
	for {
		w, err := c.Watch(ctx, o)
		if err != nil {
			return nil, err
		}
		l := leg{o: o, resume: w.ResumeOffset(), resnapshot: w.Resnapshot()}
		err = l.read(ctx, w, rng)
		w.Close()
		legs = append(legs, l)
		var lagged *LaggedError
		switch {
		case err == nil:
			return legs, nil
		case !errors.As(err, &lagged):
			return nil, err
		case len(legs) > 20:
			return legs, nil // it stays too slow
		}
		o.HasFrom, o.From, o.Retained = true, lagged.ResumeFrom, false
	}
}

func (l *leg) read(ctx context.Context, w *Watch, rng *rand.Rand) error {
	enough := l.resume + 10 + rng.Uint64N(60)
	for l.until = l.o.From; l.until < enough; {
		changes, err := w.Next(ctx)
		if err != nil {
			var lagged *LaggedError
			if errors.As(err, &lagged) {
				l.until = lagged.ResumeFrom
			}
			return err
		}
		if len(l.values) < w.RetainedCount() {
			n := min(len(changes), w.RetainedCount()-len(l.values))
			l.values = append(l.values, changes[:n]...)
			changes = changes[n:]
		}
		l.changes = append(l.changes, changes...)
		if len(changes) > 0 {
			l.until = changes[len(changes)-1].Offset + 1
		}
		if rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
		}
	}
	if len(l.values) < w.RetainedCount() {
		return fmt.Errorf("%d of %d current values", len(l.values), w.RetainedCount())
	}
	return nil
}

// A history is all changes there were, and those of each key.
type history struct {
	all   []Change
	byKey map[string][]Change
}

func newHistory(all []Change) *history {
	h := &history{all: all, byKey: map[string][]Change{}}
	for _, c := range all {
		h.byKey[string(c.Key)] = append(h.byKey[string(c.Key)], c)
	}
	return h
}

// at is the index of the first change at or past an offset.
func at(changes []Change, offset uint64) int {
	return sort.Search(len(changes), func(i int) bool { return changes[i].Offset >= offset })
}

// check compares a leg with all changes there were.
func (l *leg) check(h *history) error {
	pattern, byPrefix := string(l.o.Key), l.o.Key == nil
	if byPrefix {
		pattern = string(l.o.Prefix)
	}
	from := l.resume
	snapshot := l.o.Retained || l.resnapshot
	if l.o.HasFrom && !l.resnapshot {
		from = l.o.From
	}
	if snapshot && len(l.changes) > 0 {
		// Values may be as of a little before the tail.
		from = min(from, l.changes[0].Offset)
	}
	var want []Change
	for _, c := range h.all[at(h.all, from):max(at(h.all, from), at(h.all, l.until))] {
		if matches(c.Key, pattern, byPrefix) {
			want = append(want, c)
		}
	}
	if len(want) != len(l.changes) {
		return fmt.Errorf("%d changes from %d, want %d:\n%v\n%v", len(l.changes), from, len(want), l.changes, want)
	}
	for i, c := range l.changes {
		if c.String() != want[i].String() || c.ExpiresAtMillis != want[i].ExpiresAtMillis {
			return fmt.Errorf("change %v, want %v", c, want[i])
		}
	}
	if !snapshot || l.until < l.resume {
		return nil // or the end came among the values
	}
	values := map[string]string{}
	for i, v := range l.values {
		if i > 0 && v.Offset <= l.values[i-1].Offset {
			return fmt.Errorf("value %v after %v", v, l.values[i-1])
		}
		values[string(v.Key)] = v.String()
	}
	for key, changes := range h.byKey {
		if !matches([]byte(key), pattern, byPrefix) {
			continue
		}
		n := at(changes, from)
		switch live := n > 0 && changes[n-1].Op == Updated; {
		case live && values[key] == changes[n-1].String():
		case values[key] != "":
			return fmt.Errorf("value %q is not the one there was", values[key])
		case live && changes[n-1].ExpiresAtMillis == 0 && n == len(changes):
			// One that has lapsed is left out, and so may be one that changed
			// while the values were looked at: that change is told.
			return fmt.Errorf("value %v is missing", changes[n-1])
		}
	}
	return nil
}
