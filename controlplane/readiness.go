package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errDraining is why an instance that ends is not ready.
var errDraining = errors.New("draining")

// A readiness says whether an instance should get requests (control plane 23).
// However often it is asked, it asks the store at most once a TTL and never
// twice at once.
type readiness struct {
	health  func(ctx context.Context) error
	timeout time.Duration
	ttl     time.Duration
	clock   func() time.Time
	told    func(ready bool)

	mu       sync.Mutex
	draining bool
	known    bool
	at       time.Time
	err      error
	flight   *flight
}

// A flight is a check under way.
type flight struct{ done chan struct{} } // closed when there is an outcome, at the latest after the timeout

// drain makes the instance unready, for good.
func (r *readiness) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	r.told(false)
}

func (r *readiness) isDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// check says why the instance is not ready, nil if it is. It takes no longer
// than the timeout.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	if r.draining {
		r.mu.Unlock()
		return errDraining
	}
	fresh := r.known && r.clock().Sub(r.at) < r.ttl
	if !fresh && r.flight == nil {
		r.flight = &flight{make(chan struct{})}
		go r.fly(r.flight)
	}
	f := r.flight
	if fresh || f == nil {
		defer r.mu.Unlock()
		return r.err
	}
	r.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return fmt.Errorf("the check was given up: %w", ctx.Err())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return errDraining
	}
	return r.err
}

// fly asks the store. One that is silent beyond the timeout is given its
// outcome by the clock; it is not asked again before it has answered.
func (r *readiness) fly(f *flight) {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- r.health(ctx) }()
	select {
	case err := <-answer:
		r.land(f, err)
		return
	case <-ctx.Done():
	}
	silent := fmt.Errorf("the store did not answer within %v", r.timeout)
	r.settle(silent)
	close(f.done)
	<-answer
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight = nil
}

func (r *readiness) land(f *flight, err error) {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the store did not answer within %v", r.timeout)
	}
	r.settle(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flight = nil
	close(f.done)
}

func (r *readiness) settle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.err, r.at = true, err, r.clock()
	if !r.draining {
		r.told(err == nil)
	}
}
