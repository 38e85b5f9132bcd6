package felix

import (
	"context"
	"fmt"
	"time"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/client"
)

// sampleEvery is how often a run looks at the broker's memory.
const sampleEvery = 50 * time.Millisecond

// A StallSpec is a run of one publisher before subscribers that never read.
type StallSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	Subscribers int            `json:"subscribers"`
	Batch       int            `json:"batch"`
	RecordBytes int            `json:"record_bytes"`
	Window      int            `json:"window_bytes"`
	// PID is the broker's process.
	PID int `json:"pid"`
	// Allowed is how many bytes configuration lets the broker hold on top
	// of what it holds when it is idle.
	Allowed uint64 `json:"allowed_bytes"`
}

// Stall publishes to subscribers that never take a record and reports the
// most memory the broker held, beside what its configuration allows.
func Stall(ctx context.Context, spec StallSpec) (measure.Result, error) {
	pub, err := spec.Target.dial(ctx, client.WithPublishInflight(spec.Window))
	if err != nil {
		return measure.Result{}, err
	}
	defer pub.Close()
	_, closeSubs, err := subscribe(ctx, spec.Target, spec.Subscribers, spec.Subscribers)
	if err != nil {
		return measure.Result{}, err
	}
	defer closeSubs()
	idle, err := proc.RSS(spec.PID)
	if err != nil {
		return measure.Result{}, err
	}
	peaks := watchRSS(ctx, spec.PID)
	p := pub.Publisher(frames.Stream)
	payloads := payloadsOf(spec.Batch, spec.RecordBytes)
	run := measure.Acked{Batch: spec.Batch, RecordBytes: spec.RecordBytes, Window: spec.Window}
	r, err := run.Run(ctx, spec.Phases, func(ctx context.Context, done func(error)) error {
		return p.SendFunc(ctx, func(_ client.Ack, err error) { done(err) }, payloads...)
	}, p.Flush)
	peak, perr := peaks()
	switch {
	case err != nil:
		return measure.Result{}, err
	case perr != nil:
		return measure.Result{}, perr
	case r.Bytes < spec.Allowed:
		return measure.Result{}, fmt.Errorf("published %d MiB, less than the %d MiB allowed: a longer run is needed to say anything", r.Bytes>>20, spec.Allowed>>20)
	}
	r.RSS, r.RSSBound = max(peak, idle), idle+spec.Allowed
	r.Note("client", "1 publisher, %d subscribers that never read, a connection each", spec.Subscribers)
	r.Note("memory", "idle %d MiB, allowed on top %d MiB, published %d MiB", idle>>20, spec.Allowed>>20, r.Bytes>>20)
	return r, nil
}

// watchRSS samples a process's memory until the returned function asks for
// the most it saw.
func watchRSS(ctx context.Context, pid int) func() (peak uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	type seen struct {
		peak uint64
		err  error
	}
	result := make(chan seen, 1)
	go func() {
		var s seen
		for s.err == nil {
			rss, err := proc.RSS(pid)
			s.peak, s.err = max(s.peak, rss), err
			select {
			case <-ctx.Done():
				result <- s
				return
			case <-time.After(sampleEvery):
			}
		}
		result <- s
	}()
	return func() (uint64, error) {
		cancel()
		s := <-result
		if s.err != nil {
			return 0, fmt.Errorf("watch the broker's memory: %w", s.err)
		}
		return s.peak, nil
	}
}
