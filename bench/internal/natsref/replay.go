package natsref

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/felixlog/felix/bench/internal/measure"
)

// A ReplaySpec is a run of one reader that reads a stream from its beginning,
// again and again.
type ReplaySpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	// Records is how many the stream holds.
	Records     int `json:"records"`
	RecordBytes int `json:"record_bytes"`
}

// replayWindow is how many records are unanswered while the stream is filled.
const replayWindow = 1000

// Replay fills a stream kept in files and reads it with ordered consumers.
func Replay(ctx context.Context, spec ReplaySpec) (measure.Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	nc, js, err := spec.Target.stream(ctx, fail, jetstream.WithPublishAsyncMaxPending(replayWindow))
	if err != nil {
		return measure.Result{}, err
	}
	defer nc.Close()
	payload := make([]byte, spec.RecordBytes)
	for range spec.Records {
		if _, err := js.PublishAsync(subject, payload, jetstream.WithStallWait(stallWait)); err != nil {
			return measure.Result{}, fmt.Errorf("fill stream: %w", err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		return measure.Result{}, context.Cause(ctx)
	}
	r, err := measure.Replay(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, count func(n int)) error {
		return readOnce(ctx, js, spec.Records, count)
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "ordered consumer from the first of %d records", spec.Records)
	return r, nil
}

// readOnce reads the whole stream.
func readOnce(ctx context.Context, js jetstream.JetStream, records int, count func(n int)) error {
	c, err := js.OrderedConsumer(ctx, streamName, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return fmt.Errorf("open consumer: %w", err)
	}
	read := make(chan struct{})
	seen := 0
	consuming, err := c.Consume(func(jetstream.Msg) {
		count(1)
		if seen++; seen == records {
			close(read)
		}
	})
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	defer consuming.Stop()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
