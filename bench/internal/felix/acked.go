package felix

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// An AckedSpec is a run of one publisher that waits for no single answer.
type AckedSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	// Batch is the records of one batch, RecordBytes the payload of each.
	Batch       int `json:"batch"`
	RecordBytes int `json:"record_bytes"`
	// Window bounds the payload bytes that are not answered yet.
	Window int `json:"window_bytes"`
}

// Acked publishes batches and counts those acknowledged.
func Acked(ctx context.Context, spec AckedSpec) (measure.Result, error) {
	c, err := spec.Target.dial(ctx, client.WithPublishInflight(spec.Window))
	if err != nil {
		return measure.Result{}, err
	}
	defer c.Close()
	p := c.Publisher(frames.Stream)
	payloads := payloadsOf(spec.Batch, spec.RecordBytes)
	run := measure.Acked{Batch: spec.Batch, RecordBytes: spec.RecordBytes, Window: spec.Window}
	r, err := run.Run(ctx, spec.Phases, func(ctx context.Context, done func(error)) error {
		return p.SendFunc(ctx, func(_ client.Ack, err error) { done(err) }, payloads...)
	}, p.Flush)
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "1 publisher, %d KiB unanswered at most", spec.Window>>10)
	return r, nil
}

func payloadsOf(n, size int) [][]byte {
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = make([]byte, size)
	}
	return payloads
}

// A LoneSpec is a run of one record in flight.
type LoneSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	RecordBytes int            `json:"record_bytes"`
}

// Lone publishes one record, waits for its answer, and so on.
func Lone(ctx context.Context, spec LoneSpec) (measure.Result, error) {
	c, err := spec.Target.dial(ctx)
	if err != nil {
		return measure.Result{}, err
	}
	defer c.Close()
	payload := make([]byte, spec.RecordBytes)
	r, err := measure.ClosedLoop(ctx, spec.Phases, 1, spec.RecordBytes, func(ctx context.Context, _ int) error {
		if _, err := c.Publish(ctx, frames.Stream, payload); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		return nil
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "1 record in flight, receive polling %v", spec.Target.Poll)
	return r, nil
}
