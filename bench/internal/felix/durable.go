package felix

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// A PublishersSpec is a run of publishers that each have one record in flight.
type PublishersSpec struct {
	Target     Target         `json:"target"`
	Phases     measure.Phases `json:"phases"`
	Publishers int            `json:"publishers"`
	// Clients is how many clients, with connections of their own, the
	// publishers are spread over.
	Clients     int `json:"clients"`
	RecordBytes int `json:"record_bytes"`
}

// Publishers publishes single records and waits for each answer.
func Publishers(ctx context.Context, spec PublishersSpec) (measure.Result, error) {
	clients := make([]*client.Client, spec.Clients)
	for i := range clients {
		c, err := spec.Target.dial(ctx)
		if err != nil {
			return measure.Result{}, err
		}
		defer c.Close()
		clients[i] = c
	}
	payload := make([]byte, spec.RecordBytes)
	r, err := measure.ClosedLoop(ctx, spec.Phases, spec.Publishers, spec.RecordBytes, func(ctx context.Context, w int) error {
		if _, err := clients[w%len(clients)].Publish(ctx, frames.Stream, payload); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		return nil
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "%d publishers on %d clients, one record in flight each", spec.Publishers, spec.Clients)
	return r, nil
}

// A ReplaySpec is a run of one reader that reads a stream from its beginning,
// again and again.
type ReplaySpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	// Records is how many the stream holds, published in batches of Batch.
	Records     int `json:"records"`
	Batch       int `json:"batch"`
	RecordBytes int `json:"record_bytes"`
}

// Replay fills a durable stream and reads it from the earliest record.
func Replay(ctx context.Context, spec ReplaySpec) (measure.Result, error) {
	c, err := spec.Target.dial(ctx)
	if err != nil {
		return measure.Result{}, err
	}
	defer c.Close()
	if err := fill(ctx, c, spec.Records, spec.Batch, spec.RecordBytes); err != nil {
		return measure.Result{}, fmt.Errorf("fill stream: %w", err)
	}
	r, err := measure.Replay(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, count func(n int)) error {
		return readOnce(ctx, c, spec.Records, count)
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "1 subscription from the first of %d records, published %d a batch", spec.Records, spec.Batch)
	return r, nil
}

// fill publishes records of size bytes, batch at a time, and waits until all
// are acknowledged.
func fill(ctx context.Context, c *client.Client, records, batch, size int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := c.Publisher(frames.Stream)
	payloads := payloadsOf(batch, size)
	for sent := 0; sent < records; sent += batch {
		err := p.SendFunc(ctx, func(_ client.Ack, err error) {
			if err != nil {
				fail(err)
			}
		}, payloads[:min(batch, records-sent)]...)
		if err != nil {
			return err
		}
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// readOnce reads the whole stream; a gap is an error.
func readOnce(ctx context.Context, c *client.Client, records int, count func(n int)) error {
	sub, err := c.Subscribe(ctx, frames.Stream, client.From(client.Earliest()))
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer sub.Close()
	for seen := 0; seen < records; {
		b, err := sub.NextBatch(ctx)
		if err != nil {
			return err
		}
		seen += b.Len()
		count(b.Len())
	}
	if s := sub.Stats(); s.Lost+s.Dropped > 0 {
		return fmt.Errorf("%d records lost, %d dropped", s.Lost, s.Dropped)
	}
	return nil
}
