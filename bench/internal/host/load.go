// Package host watches the machine a benchmark runs on: what else it does
// meanwhile, and what it is.
package host

import (
	"context"
	"runtime"
	"time"
)

// A Watch measures how busy other processes keep the machine over a span.
type Watch struct {
	start        time.Time
	machine, own time.Duration
	known        bool
}

// Begin starts a span.
func Begin() Watch {
	machine, own, err := read()
	return Watch{start: time.Now(), machine: machine, own: own, known: err == nil}
}

// Foreign is the share of all CPUs, 0 to 1, that processes used since Begin
// which are neither this one nor the children whose CPU time is given. It is
// zero where the system does not tell.
func (w Watch) Foreign(children time.Duration) float64 {
	machine, own, err := read()
	if err != nil || !w.known {
		return 0
	}
	return share(machine-w.machine-(own-w.own)-children, time.Since(w.start), runtime.NumCPU())
}

func share(used, span time.Duration, cpus int) float64 {
	if span <= 0 {
		return 0
	}
	return min(max(float64(used)/float64(span)/float64(cpus), 0), 1)
}

const (
	quiet     = 0.07                   // foreign load that counts as none
	lookEvery = 200 * time.Millisecond // span of one look while settling
)

// Settle waits until other processes leave the machine alone, at most as
// long as atMost or until ctx ends.
func Settle(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		w := Begin()
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		if w.Foreign(0) < quiet {
			return
		}
	}
}
