package tlsconfig

import (
	"log/slog"
	"sync"
	"time"
)

// reloadOptions are [ServerOptions]' fields of these names.
type reloadOptions struct {
	every  time.Duration
	now    func() time.Time
	logger *slog.Logger
}

// A reloaded is a value made from files. It is made anew by the first use
// after it has become old: no goroutine, and nothing to close. While the files
// cannot be used, the last good value serves.
type reloaded[T any] struct {
	what string
	load func() (*T, error)
	reloadOptions

	mu      sync.Mutex
	value   *T
	read    time.Time
	problem string
}

// newReloaded loads the first value, without which there is nothing to serve.
func newReloaded[T any](what string, load func() (*T, error), o reloadOptions) (*reloaded[T], error) {
	if o.every <= 0 {
		o.every = DefaultReload
	}
	if o.now == nil {
		o.now = time.Now
	}
	v, err := load()
	if err != nil {
		return nil, err
	}
	return &reloaded[T]{what: what, load: load, reloadOptions: o, value: v, read: o.now()}, nil
}

func (r *reloaded[T]) get() *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.read) < r.every {
		return r.value
	}
	r.read = now
	v, err := r.load()
	if err == nil {
		r.value = v
	}
	r.report(err)
	return r.value
}

// report logs a problem when it is new, and its end.
func (r *reloaded[T]) report(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == r.problem {
		return
	}
	r.problem = problem
	if r.logger == nil {
		return
	}
	if err != nil {
		r.logger.Error(r.what+" cannot be read again, the one in use stays", "error", err)
		return
	}
	r.logger.Info(r.what + " was read again")
}
