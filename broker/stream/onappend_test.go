package stream

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Who listens hears of every batch, when it can be read, until it stops.
func TestOnAppend(t *testing.T) {
	sh := newShard(t, Config{})
	var heard, other int
	_, tail := sh.Bounds()
	stop := sh.OnAppend(func() {
		heard++
		if _, now := sh.Bounds(); now != tail+uint64(heard) {
			t.Errorf("call %d at tail %d", heard, now-tail)
		}
	})
	publish(t, sh, 1, nil)
	stopOther := sh.OnAppend(func() { other++ })
	publish(t, sh, 1, nil)
	stop()
	stop()
	publish(t, sh, 1, nil)
	stopOther()
	publish(t, sh, 1, nil)
	if heard != 2 || other != 2 || sh.listeners.all.Load() != nil {
		t.Fatalf("heard %d and %d", heard, other)
	}
}

// Listeners come and go while batches are published.
func TestOnAppendUnderLoad(t *testing.T) {
	sh := newShard(t, Config{})
	var all atomic.Int64
	sh.OnAppend(func() { all.Add(1) })
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				var heard atomic.Int64
				stop := sh.OnAppend(func() { heard.Add(1) })
				stop()
			}
		})
	}
	const batches = 500
	for range batches {
		publish(t, sh, 1, nil)
	}
	wait.Wait()
	if n := all.Load(); n != batches {
		t.Fatalf("heard %d of %d", n, batches)
	}
}
