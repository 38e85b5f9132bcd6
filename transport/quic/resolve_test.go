package quic

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestResolve(t *testing.T) {
	host, addrs, err := resolve(t.Context(), "[::1]:5000")
	if err != nil || host != "::1" || len(addrs) != 1 || addrs[0].String() != "[::1]:5000" {
		t.Errorf("resolve: %q %v %v", host, addrs, err)
	}
	host, addrs, err = resolve(t.Context(), "localhost:5000")
	if err != nil || host != "localhost" || !addrs[0].Addr().Is4() {
		t.Errorf("resolve: %q %v %v, want IPv4 first", host, addrs, err)
	}
	if got := interleave([]int{1, 2, 3}, []int{10}); !slices.Equal(got, []int{1, 10, 2, 3}) {
		t.Errorf("interleave: %v", got)
	}
}

func TestRace(t *testing.T) {
	errFirst := errors.New("first")
	// blocked answers only when told to give up.
	blocked := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	t.Run("a silent address does not hold up the next", func(t *testing.T) {
		got, err := race(t.Context(), []int{1, 2, 3}, time.Millisecond, func(ctx context.Context, a int) (int, error) {
			if a == 3 {
				return 30, nil
			}
			return blocked(ctx)
		}, func(int) {})
		if got != 30 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
	t.Run("a failure starts the next at once", func(t *testing.T) {
		got, err := race(t.Context(), []int{1, 2}, time.Hour, func(_ context.Context, a int) (int, error) {
			if a == 1 {
				return 0, errFirst
			}
			return 20, nil
		}, func(int) {})
		if got != 20 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
	t.Run("the first error speaks for all", func(t *testing.T) {
		_, err := race(t.Context(), []int{1, 2}, time.Hour, func(_ context.Context, a int) (int, error) {
			if a == 1 {
				return 0, errFirst
			}
			return 0, errors.New("second")
		}, func(int) {})
		if err != errFirst {
			t.Errorf("got %v", err)
		}
	})
	t.Run("whoever answers late is dropped", func(t *testing.T) {
		var dropped atomic.Int32
		release := make(chan struct{})
		got, err := race(t.Context(), []int{1, 2}, time.Millisecond, func(_ context.Context, a int) (int, error) {
			if a == 1 {
				<-release
				return 10, nil
			}
			return 20, nil
		}, func(c int) { dropped.Store(int32(c)) })
		if got != 20 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		close(release)
		eventually(t, "the late one is dropped", func() bool { return dropped.Load() == 10 })
	})
}
