package natsref

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/felixlog/felix/bench/internal/measure"
)

const subject = "bench"

// A FanoutSpec is a run of one publisher and several subscribers, each on a
// connection of its own.
type FanoutSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	Subscribers int            `json:"subscribers"`
	Batch       int            `json:"batch"`
	RecordBytes int            `json:"record_bytes"`
	MaxLag      uint64         `json:"max_lag"`
}

// Fanout publishes over NATS core and counts every delivery.
func Fanout(ctx context.Context, spec FanoutSpec) (measure.Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	tally := measure.NewTally(spec.Subscribers)
	for i := range spec.Subscribers {
		nc, err := spec.Target.connect(fail)
		if err != nil {
			return measure.Result{}, err
		}
		defer nc.Close()
		sub, err := nc.Subscribe(subject, func(*nats.Msg) { tally.Add(i, 1) })
		if err != nil {
			return measure.Result{}, fmt.Errorf("subscribe: %w", err)
		}
		// The lag bound of the run takes the place of the library's own,
		// which would drop.
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return measure.Result{}, fmt.Errorf("lift pending limits: %w", err)
		}
		if err := nc.FlushTimeout(readyWithin); err != nil {
			return measure.Result{}, fmt.Errorf("flush subscription: %w", err)
		}
	}
	pub, err := spec.Target.connect(fail)
	if err != nil {
		return measure.Result{}, err
	}
	defer pub.Close()
	payload := make([]byte, spec.RecordBytes)
	run := measure.Fanout{Received: tally, Batch: spec.Batch, RecordBytes: spec.RecordBytes, MaxLag: spec.MaxLag}
	r, err := run.Run(ctx, spec.Phases, func(context.Context) error {
		for range spec.Batch {
			if err := pub.Publish(subject, payload); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "1 publisher and %d subscribers, a connection each", spec.Subscribers)
	return r, nil
}
