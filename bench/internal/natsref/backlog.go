package natsref

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// prefillBatch is the records of one batch of a backlog.
const prefillBatch = 1000

// prefill makes the stream of the run and its backlog, with a server of its
// own that is gone when it returns.
func prefill(ctx context.Context, spec ServerSpec) error {
	lazy := spec
	lazy.SyncAlways = false
	s, err := start(lazy)
	if err != nil {
		return err
	}
	defer stop(s)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	target := Target{URL: s.ClientURL(), TLS: spec.TLS, Files: spec.Files}
	nc, js, err := target.stream(ctx, fail)
	if err != nil {
		return err
	}
	defer nc.Close()
	payload := make([]byte, spec.BacklogBytes)
	for left := spec.Backlog; left > 0; left -= prefillBatch {
		if err := fastBatch(ctx, js, min(left, prefillBatch), payload); err != nil {
			return err
		}
	}
	return holds(ctx, js, spec.Backlog)
}

// holds says whether the stream of the run holds that many records, numbered
// from 1.
func holds(ctx context.Context, js jetstream.JetStream, records int) error {
	stream, err := js.Stream(ctx, streamName)
	if err != nil {
		return fmt.Errorf("look up stream: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("look at stream: %w", err)
	}
	if s := info.State; s.Msgs != uint64(records) || s.FirstSeq != 1 || s.LastSeq != uint64(records) {
		return fmt.Errorf("stream holds %d records, %d to %d, not %d", s.Msgs, s.FirstSeq, s.LastSeq, records)
	}
	return nil
}
