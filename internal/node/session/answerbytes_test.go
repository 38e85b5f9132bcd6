package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/felixlog/felix/wire"
)

// What one connection holds of unread answers is bounded; who waits for room is
// let in when there is some, or leaves with its context.
func TestAnswerBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b answerBytes
		const half = maxAnswerBytes / 2
		if !b.take(2 * maxAnswerBytes) {
			t.Fatal("one larger than the bound is refused")
		}
		if b.take(1) {
			t.Fatal("another beside it is taken")
		}
		b.release(2 * maxAnswerBytes)
		for range 2 {
			if !b.take(half) {
				t.Fatal("no room for a half")
			}
		}
		if b.take(1) {
			t.Fatal("more than two halves are taken")
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error, 2)
		go func() { results <- b.reserve(ctx, half) }()
		synctest.Wait()
		cancel(gone)
		if err := <-results; !errors.Is(err, gone) {
			t.Fatalf("a wait that was given up: %v", err)
		}
		for range 2 {
			go func() { results <- b.reserve(t.Context(), half) }()
		}
		synctest.Wait()
		b.resize(half, 1) // a page that was smaller than it might have been
		synctest.Wait()
		if len(results) != 0 {
			t.Fatal("let in without room")
		}
		b.release(half + 1)
		for range 2 {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
		b.release(2 * half)
		if b.used != 0 {
			t.Fatalf("%d bytes left over", b.used)
		}
	})
}

// All polls of a connection together ask for little more than one could.
func TestPollShares(t *testing.T) {
	for _, tc := range []struct {
		running int64
		want    int
	}{{1, wire.MaxPollBytes}, {4, wire.MaxPollBytes}, {16, 1 << 20}, {4096, leastPollBytes}} {
		if got := pollShare(tc.running); got != tc.want {
			t.Errorf("with %d polls: %d bytes, want %d", tc.running, got, tc.want)
		}
	}
}
