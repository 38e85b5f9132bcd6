package rounds_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/internal/rounds"
)

// Who joins while a round is under way is served by the next one, with all who
// do.
func TestJoinersAreServedByLaterRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan int), make(chan error)
		n := 0
		r := rounds.New(0, time.Hour, func(context.Context) error {
			n++
			begun <- n
			return <-end
		})
		type outcome struct {
			number uint64
			err    error
		}
		join := func(many int) (outcomes chan outcome) {
			outcomes = make(chan outcome, many)
			for range many {
				go func() {
					number, err := r.Join(t.Context())
					outcomes <- outcome{number, err}
				}()
			}
			synctest.Wait()
			return outcomes
		}
		first := join(1)
		<-begun
		second := join(100)
		failure := errors.New("failure")
		end <- failure
		if got := <-first; got != (outcome{1, failure}) {
			t.Fatalf("the first: %+v", got)
		}
		if <-begun != 2 || len(second) != 0 {
			t.Fatal("those who joined later were served by a round that had begun")
		}
		end <- nil
		for range cap(second) {
			if got := <-second; got != (outcome{2, nil}) {
				t.Fatalf("a later one: %+v", got)
			}
		}
		if n != 2 {
			t.Errorf("%d rounds for 101 that joined", n)
		}
	})
}

// However many join, one after the other or at once, rounds keep their distance.
func TestRoundsKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 100 * time.Millisecond
		var begun []time.Time
		r := rounds.New(interval, time.Hour, func(context.Context) error {
			begun = append(begun, time.Now())
			return nil
		})
		start := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 10 {
					if _, err := r.Join(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if !begun[0].Equal(start) {
			t.Error("the first had to wait")
		}
		for i := range begun[1:] {
			if d := begun[i+1].Sub(begun[i]); d < interval {
				t.Fatalf("round %d began %v after the one before", i+2, d)
			}
		}
		if len(begun) < 10 || len(begun) > 11 {
			t.Errorf("%d rounds", len(begun))
		}
		// After a rest nobody waits.
		time.Sleep(time.Hour)
		rested := time.Now()
		if _, err := r.Join(t.Context()); err != nil || !begun[len(begun)-1].Equal(rested) {
			t.Errorf("%v, began at %v and not at %v", err, begun[len(begun)-1], rested)
		}
	})
}

// The work ends in time, and who gives up does not end it for others.
func TestRoundsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rounds.New(0, time.Second, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		impatient, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := r.Join(impatient)
			left <- err
		}()
		stays := make(chan error)
		go func() {
			_, err := r.Join(t.Context())
			stays <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		if err := <-stays; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who stayed: %v", err)
		}
		time.Sleep(2 * time.Second) // the round of who gave up may be another one
	})
}
