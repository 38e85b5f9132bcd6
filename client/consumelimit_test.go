package client

import (
	"context"
	"testing"
	"time"
)

// limited is a consumer that polls nothing.
func limited(t *testing.T, o consumeOptions) *consumer {
	t.Helper()
	c := loopClient(t)
	o.visibility = 30 * time.Second
	k := newConsumer(context.Background(), c.Group("s", "g"), nil, &o)
	t.Cleanup(func() { k.endHandlers(nil); k.endSettle() })
	return k
}

// TestConsumeLimit: how many records may be claimed.
func TestConsumeLimit(t *testing.T) {
	table := []struct {
		name    string
		handler time.Duration // average
		proven  int
		wary    int
		limit   int
	}{
		{"at first", 0, 0, 0, 4},
		{"trust grows", time.Microsecond, 3, 0, 7},
		{"up to two polls", time.Microsecond, 256, 0, 4 + 256},
		{"what begins within a second", 100 * time.Millisecond, 256, 0, 4 + 40},
		{"slow handlers have nothing ahead", 5 * time.Second, 256, 0, 4},
		{"nor have repeated records", time.Microsecond, 256, 1, 4},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			k := limited(t, consumeOptions{concurrency: 4, batch: 128})
			k.average, k.proven, k.wary = row.handler, row.proven, row.wary
			if n := k.limit(); n != row.limit {
				t.Errorf("limit %d, want %d", n, row.limit)
			}
		})
	}
}

// TestConsumeAsk: how many records the next poll asks for.
func TestConsumeAsk(t *testing.T) {
	table := []struct {
		name                                string
		queued, running, reserved, settling int
		ask                                 int
	}{
		{"a whole poll", 0, 0, 0, 0, 128},
		{"and one ahead", 128, 4, 0, 0, 128},
		{"no small gaps", 133, 4, 0, 0, 0},
		{"unless a handler is idle", 0, 3, 200, 0, 57},
		{"nothing at the limit", 200, 4, 56, 0, 0},
		{"nothing while the broker does not answer", 0, 0, 0, maxSettling, 0},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			k := limited(t, consumeOptions{concurrency: 4, batch: 128})
			k.average, k.proven = time.Microsecond, 256
			k.queued, k.running, k.reserved, k.settling = row.queued, row.running, row.reserved, row.settling
			if n := k.ask(); n != row.ask {
				t.Errorf("asks for %d, want %d", n, row.ask)
			}
		})
	}
}

// TestWaryOfRepeatedRecords: of one shard at a time.
func TestWaryOfRepeatedRecords(t *testing.T) {
	k := limited(t, consumeOptions{concurrency: 1, batch: 8})
	a, b := &consumedShard{}, &consumedShard{}
	first, again := []Delivery{{Claim: Claim{Attempts: 1}}}, []Delivery{{Claim: Claim{Attempts: 1}}, {Claim: Claim{Attempts: 2}}}
	for i, step := range []struct {
		sh      *consumedShard
		records []Delivery
		wary    int
	}{{a, first, 0}, {a, again, 1}, {a, again, 1}, {b, again, 2}, {a, first, 1}, {b, nil, 0}, {b, nil, 0}} {
		if k.look(step.sh, step.records); k.wary != step.wary {
			t.Errorf("step %d: wary of %d shards, want %d", i, k.wary, step.wary)
		}
	}
}

func TestExponentialBackoff(t *testing.T) {
	for _, row := range []struct {
		random   float64
		attempts uint32
		want     time.Duration
	}{
		{0, 0, time.Second}, {0, 1, time.Second}, {0, 2, 2 * time.Second}, {0, 6, 32 * time.Second},
		{0, 9, 256 * time.Second}, {0, 10, 300 * time.Second}, {0, 1 << 31, 300 * time.Second},
		{0.5, 2, 1500 * time.Millisecond}, {1, 2, time.Second},
	} {
		f := ExponentialBackoff(time.Second, 5*time.Minute, func() float64 { return row.random })
		if got := f(row.attempts); got != row.want {
			t.Errorf("attempt %d, random %v: %v, want %v", row.attempts, row.random, got, row.want)
		}
	}
	if d := ExponentialBackoff(time.Second, time.Minute, nil)(1); d < time.Second/2 || d > time.Second {
		t.Errorf("of the runtime's randomness: %v", d)
	}
}

// TestFailuresThatLast end a consumer; the others are waited out.
func TestFailuresThatLast(t *testing.T) {
	refused := func(code Code, class RetryClass) error { return &Error{Code: code, Retry: class} }
	for _, row := range []struct {
		name  string
		err   error
		lasts bool
	}{
		{"forbidden", refused(CodeForbidden, RetryNever), true},
		{"token refused", refused(CodeUnauthenticated, RetryNever), true},
		{"no token just now", &Error{Code: CodeUnauthenticated, Retry: RetryNever, Err: context.DeadlineExceeded}, false},
		{"unavailable", refused(CodeShardUnavailable, RetryNow), false},
		{"storage", refused(CodeStorage, RetryUnknown), false},
		{"lost", lost("", "", RetryUnknown, nil), false},
		{"unreachable", &UnreachableError{}, false},
		{"unreachable for good", &UnreachableError{permanent: true}, true},
		{"unsupported", &UnsupportedError{}, true},
		{"closed", ErrClosed, true},
		{"unexpected answer", &Error{}, true},
	} {
		if f := new(failing); f.lasts(row.err) != row.lasts {
			t.Errorf("%s: lasts %v", row.name, !row.lasts)
		}
	}
	f := new(failing)
	missing := refused(CodeNotFound, RetryLater)
	for range 2 {
		if f.lasts(missing) {
			t.Error("a stream just missed is given up")
		}
	}
	if f.missing = f.missing.Add(-notFoundFor); !f.lasts(missing) || f.row != 3 {
		t.Error("a stream missed for long is not given up")
	}
	f.missing = f.missing.Add(-notFoundFor)
	if f.lasts(refused(CodeShardUnavailable, RetryNow)) || f.lasts(missing) {
		t.Error("a stream missed again is given up at once")
	}
}
