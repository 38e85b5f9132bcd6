package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitListPassesAWakeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		l := waitList{mu: &mu}
		ended, end := context.WithCancel(context.Background())
		results := make(chan string, 3)
		wait := func(name string, ctx context.Context) {
			mu.Lock()
			defer mu.Unlock()
			if err := l.wait(ctx); err != nil {
				name += " gave up"
			}
			results <- name
		}
		go wait("first", ended)
		synctest.Wait()
		go wait("second", context.Background())
		synctest.Wait()
		mu.Lock()
		l.wake(1)
		end() // first was woken and its context ended: either way nothing is lost
		mu.Unlock()
		got := <-results
		if got == "first gave up" {
			if got = <-results; got != "second" {
				t.Errorf("then %s", got)
			}
		} else {
			mu.Lock()
			l.wake(5)
			mu.Unlock()
			<-results
		}
		mu.Lock()
		if !l.empty() {
			t.Error("somebody still waits")
		}
		if err := l.wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("wait with an ended context: %v", err)
		}
		mu.Unlock()
	})
}

func TestBudgetIsFairAndLetsTheLargeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		ctx := context.Background()
		if err := b.acquire(ctx, 60); err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 4)
		for i, n := range []int{500, 30, 30} {
			go func() {
				if err := b.acquire(ctx, n); err != nil {
					t.Error(err)
				}
				order <- i
			}()
			synctest.Wait()
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := b.acquire(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that came later was let through: %v", err)
		}
		b.release(60)
		if got := <-order; got != 0 {
			t.Errorf("%d came first", got)
		}
		synctest.Wait()
		if len(order) != 0 {
			t.Error("somebody was let in beside the large one")
		}
		b.release(500)
		<-order
		<-order
		idle := make(chan error, 1)
		go func() { idle <- b.waitIdle(ctx) }()
		synctest.Wait()
		b.release(30)
		synctest.Wait()
		if len(idle) != 0 {
			t.Error("idle too early")
		}
		b.release(30)
		if err := <-idle; err != nil {
			t.Error(err)
		}
	})
}

func TestBudgetUnderContention(t *testing.T) {
	b := newBudget(10)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := range 200 {
				n := (i*k)%12 + 1
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(k%3)*100*time.Microsecond+patience*time.Duration(k%2))
				if err := b.acquire(ctx, n); err == nil {
					b.release(n)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if b.used != 0 || !b.room.empty() {
		t.Errorf("%d used, waiting %v", b.used, !b.room.empty())
	}
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu      sync.Mutex
			w       watchdog
			oldest  uint64
			waiting = true
			bitten  int
		)
		w.init(&mu, time.Second, func() (uint64, bool) { return oldest, waiting }, func() { bitten++; w.stop() })
		locked := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		locked(w.busy)
		for range 10 { // progress keeps it quiet
			time.Sleep(900 * time.Millisecond)
			locked(func() { oldest++ })
		}
		locked(func() { waiting = false })
		time.Sleep(time.Hour) // nothing under way
		locked(func() { waiting = true; w.busy() })
		time.Sleep(time.Second - time.Millisecond)
		locked(func() {
			if bitten != 0 {
				t.Error("bitten too early")
			}
		})
		time.Sleep(time.Second)
		locked(func() {
			if bitten != 1 {
				t.Errorf("bitten %d times, want once", bitten)
			}
		})
	})
}

func TestReconnectWaits(t *testing.T) {
	p := ReconnectPolicy{Attempts: 5, Initial: 200 * time.Millisecond, Max: 2 * time.Second, Random: func() float64 { return 0.5 }}
	for n, want := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		if got := p.wait(n + 1); got != want*time.Millisecond {
			t.Errorf("wait %d is %v, want %v", n+1, got, want*time.Millisecond)
		}
	}
	p.Random = func() float64 { return 0 }
	if got := p.wait(3); got != 0 {
		t.Errorf("full jitter begins at %v, want 0", got)
	}
	if got := p.wait(5000); got != 0 {
		t.Errorf("wait 5000 is %v", got)
	}
}

func TestRetryDecisions(t *testing.T) {
	c := &Client{cfg: config{reconnect: ReconnectPolicy{Attempts: 5, Initial: 100 * time.Millisecond, Max: time.Second, Random: func() float64 { return 0.5 }}}, ctx: context.Background()}
	cases := []struct {
		name       string
		err        error
		attempt    int
		repeatable bool
		since      time.Duration
		wait       time.Duration
		again      bool
	}{
		{"retry", &Error{Retry: RetryNow}, 1, false, 0, 50 * time.Millisecond, true},
		{"backs off", &Error{Retry: RetryNow}, 3, false, 0, 200 * time.Millisecond, true},
		{"attempts used up", &Error{Retry: RetryNow}, 5, false, 0, 0, false},
		{"redirect", &Error{Retry: RetryElsewhere}, 1, false, 0, 50 * time.Millisecond, true},
		{"at least the hint", &Error{Retry: RetryLater, RetryAfter: 3 * time.Second}, 1, false, 0, 3 * time.Second, true},
		{"not found, early", &Error{Retry: RetryLater, Code: CodeNotFound}, 1, false, time.Second, 50 * time.Millisecond, true},
		{"not found, late", &Error{Retry: RetryLater, Code: CodeNotFound}, 1, false, 6 * time.Second, 0, false},
		{"unknown outcome of a write", &Error{Retry: RetryUnknown}, 1, false, 0, 0, false},
		{"unknown outcome of a read", &Error{Retry: RetryUnknown}, 1, true, 0, 50 * time.Millisecond, true},
		{"fatal", &Error{Retry: RetryNever}, 1, true, 0, 0, false},
		{"context", &Error{Retry: RetryNow, Err: context.Canceled}, 1, true, 0, 0, false},
		{"unreachable", &UnreachableError{}, 1, false, 0, 50 * time.Millisecond, true},
		{"never reachable", &UnreachableError{permanent: true}, 1, false, 0, 0, false},
		{"unsupported", &UnsupportedError{}, 1, true, 0, 0, false},
		{"cursor", &CursorError{}, 1, true, 0, 0, false},
	}
	for _, tc := range cases {
		wait, again := c.again(tc.err, tc.attempt, tc.repeatable, tc.since)
		if again != tc.again || again && wait != tc.wait {
			t.Errorf("%s: wait %v again %v, want %v %v", tc.name, wait, again, tc.wait, tc.again)
		}
	}
}
