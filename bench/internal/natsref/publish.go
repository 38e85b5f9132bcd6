package natsref

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/felixlog/felix/bench/internal/measure"
)

const (
	streamName = "BENCH"
	// stallWait is how long a publisher may wait for room in its window, where
	// the library would give up after 200 ms: a slow disk is a slow figure,
	// not an error.
	stallWait = 30 * time.Second
)

// The ways to publish to a stream.
const (
	// WaySync has workers that each wait for the answer to their record.
	WaySync = "sync"
	// WayAsync has one publisher that leaves a window of records unanswered.
	WayAsync = "async"
	// WayFast has one publisher that sends fast-ingest batches.
	WayFast = "fast"
)

// A PublishSpec is a run of publishes to one stream kept in files.
type PublishSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	Way    string         `json:"way"`
	// InFlight is the workers of WaySync, the window of WayAsync, and the
	// records of one batch of WayFast.
	InFlight    int `json:"in_flight"`
	RecordBytes int `json:"record_bytes"`
}

// Publish publishes to a stream and counts what was acknowledged.
func Publish(ctx context.Context, spec PublishSpec) (measure.Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	nc, js, err := spec.Target.stream(ctx, fail, jetstream.WithPublishAsyncMaxPending(max(spec.InFlight, 1)))
	if err != nil {
		return measure.Result{}, err
	}
	defer nc.Close()
	switch spec.Way {
	case WaySync:
		return publishSync(ctx, js, spec)
	case WayAsync:
		return publishAsync(ctx, js, spec)
	case WayFast:
		return publishFast(ctx, js, spec)
	}
	return measure.Result{}, fmt.Errorf("unknown way to publish %q", spec.Way)
}

// stream connects and makes the stream of the run.
func (t Target) stream(ctx context.Context, fail context.CancelCauseFunc, opts ...jetstream.JetStreamOpt) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := t.connect(fail)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc, opts...)
	if err == nil {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: streamName, Subjects: []string{subject}, Storage: jetstream.FileStorage, AllowBatchPublish: true,
		})
	}
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("create stream: %w", err)
	}
	return nc, js, nil
}

func publishSync(ctx context.Context, js jetstream.JetStream, spec PublishSpec) (measure.Result, error) {
	payload := make([]byte, spec.RecordBytes)
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.InFlight, spec.RecordBytes, func(ctx context.Context, _ int) error {
		_, err := js.Publish(ctx, subject, payload)
		return err
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "%d records in flight on one connection, one worker each", spec.InFlight)
	return r, nil
}

func publishAsync(ctx context.Context, js jetstream.JetStream, spec PublishSpec) (measure.Result, error) {
	payload := make([]byte, spec.RecordBytes)
	run := measure.Acked{Batch: 1, RecordBytes: spec.RecordBytes, Window: spec.InFlight * spec.RecordBytes}
	var answers sync.WaitGroup
	r, err := run.Run(ctx, spec.Phases, func(_ context.Context, done func(error)) error {
		ack, err := js.PublishAsync(subject, payload, jetstream.WithStallWait(stallWait))
		if err != nil {
			return err
		}
		answers.Go(func() {
			select {
			case <-ack.Ok():
				done(nil)
			case err := <-ack.Err():
				done(err)
			case <-ctx.Done():
			}
		})
		return nil
	}, func(ctx context.Context) error {
		select {
		case <-js.PublishAsyncComplete():
			answers.Wait()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "1 publisher, %d records unanswered at most", spec.InFlight)
	return r, nil
}

// publishFast sends one batch after the other; a batch counts when its commit
// is answered.
func publishFast(ctx context.Context, js jetstream.JetStream, spec PublishSpec) (measure.Result, error) {
	payload := make([]byte, spec.RecordBytes)
	var r measure.Result
	until := func(end time.Time) error {
		for time.Now().Before(end) {
			if err := fastBatch(ctx, js, spec.InFlight, payload); err != nil {
				return err
			}
			r.Records += uint64(spec.InFlight)
		}
		return nil
	}
	if err := until(time.Now().Add(spec.Phases.Warmup)); err != nil {
		return measure.Result{}, err
	}
	r.Records = 0
	begin := time.Now()
	if err := until(begin.Add(spec.Phases.Measure)); err != nil {
		return measure.Result{}, err
	}
	r.Elapsed = time.Since(begin)
	r.Bytes = r.Records * uint64(spec.RecordBytes)
	r.Note("client", "1 publisher, fast-ingest batches of %d records", spec.InFlight)
	return r, nil
}

// fastBatch sends one fast-ingest batch of the same payload and waits for the
// answer to its commit.
func fastBatch(ctx context.Context, js jetstream.JetStream, records int, payload []byte) error {
	var failed atomic.Pointer[error]
	p, err := jetstreamext.NewFastPublisher(js, jetstreamext.WithFastPublisherErrorHandler(func(err error) { failed.Store(&err) }))
	if err != nil {
		return fmt.Errorf("fast batch: %w", err)
	}
	for range records - 1 {
		if _, err := p.Add(subject, payload); err != nil {
			return fmt.Errorf("fast batch: %w", err)
		}
	}
	if _, err := p.Commit(ctx, subject, payload); err != nil {
		return fmt.Errorf("fast batch: %w", err)
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("fast batch: %w", *err)
	}
	return nil
}
