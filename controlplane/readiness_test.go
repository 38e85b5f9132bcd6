package controlplane

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newReadiness(health func(context.Context) error) (*readiness, *atomic.Bool) {
	var gauge atomic.Bool
	return &readiness{health: health, timeout: 2 * time.Second, ttl: time.Second, clock: time.Now, told: gauge.Store}, &gauge
}

// However many ask, the store is asked once a TTL.
func TestReadinessIsCachedAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		r, gauge := newReadiness(func(context.Context) error {
			asked.Add(1)
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for range 50 { // 50 times 100 ms
			var wait sync.WaitGroup
			for range 20 {
				wait.Go(func() {
					if err := r.check(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if n := asked.Load(); n < 2 || n > 6 || !gauge.Load() {
			t.Errorf("the store was asked %d times in 5 s", n)
		}
	})
}

// A silent store costs a probe its timeout and no more, and one question.
func TestReadinessOfASilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		r, gauge := newReadiness(func(context.Context) error { // does not mind its context
			asked.Add(1)
			<-release
			return nil
		})
		for i := range 10 {
			began := time.Now()
			err := r.check(t.Context())
			if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "did not answer") || took > 2*time.Second || i > 0 && took > 0 {
				t.Errorf("check %d: %v after %v", i, err, took)
			}
			time.Sleep(1500 * time.Millisecond)
		}
		if asked.Load() != 1 || gauge.Load() {
			t.Errorf("the store was asked %d times", asked.Load())
		}
		close(release)
		synctest.Wait()
		if err := r.check(t.Context()); err != nil || !gauge.Load() {
			t.Errorf("after it came back: %v", err)
		}
	})
}

func TestReadinessErrorsAndDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("schema is older than this build")
		r, gauge := newReadiness(func(context.Context) error { return broken })
		if err := r.check(t.Context()); !errors.Is(err, broken) || gauge.Load() {
			t.Errorf("%v", err)
		}
		r, _ = newReadiness(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), "did not answer") {
			t.Errorf("%v", err)
		}
		var asked bool
		r, gauge = newReadiness(func(context.Context) error { asked = true; return nil })
		r.drain()
		if err := r.check(t.Context()); !errors.Is(err, errDraining) || asked || gauge.Load() {
			t.Errorf("draining: %v, asked %v", err, asked)
		}
	})
}

// Over HTTP: readiness says why, and liveness does not care.
func TestProbesOverASilentStore(t *testing.T) {
	st := newStuck(t)
	o := quick(st)
	o.ReadinessTimeout = 20 * time.Millisecond
	s := start(t, o)
	c := client(t)
	base := "http://" + s.Addr()
	for _, path := range []string{"/v1/system/ready", "/v1/system/health"} {
		if status, text := get(t, c, base+path); status != 503 || !strings.Contains(text, "not_ready") || !strings.Contains(text, "did not answer") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, url := range []string{base + "/v1/system/live", "http://" + s.MetricsAddr() + "/live", "http://" + s.MetricsAddr() + "/ready"} {
		if status, text := get(t, c, url); status != 200 {
			t.Errorf("%s: %d %s", url, status, text)
		}
	}
	close(st.release)
	eventually(t, "ready again", func() bool {
		status, _ := get(t, c, base+"/v1/system/ready")
		return status == 200
	})
}
