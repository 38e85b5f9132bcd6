package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/client"
)

// A Kill is the end of the broker in the middle of the feed.
type Kill struct {
	// After is how many records were acknowledged by then.
	After int
	// At is when it was killed, Back when it acknowledged the next record; both
	// are zero until then.
	At, Back time.Time

	started bool // it runs again
}

// Done says that the broker was killed and is back.
func (k Kill) Done() bool { return !k.Back.IsZero() }

// Recovery is how long the broker acknowledged nothing.
func (k Kill) Recovery() time.Duration {
	if !k.Done() {
		return 0
	}
	return k.Back.Sub(k.At)
}

// answered notes an acknowledged record.
func (k *Kill) answered(now time.Time) {
	if k.started && k.Back.IsZero() {
		k.Back = now
	}
}

// lastBeforeKill is the record that is sent only once the broker is gone, and
// those behind it: however fast the feed is, it is killed in the middle.
func (d *Demo) lastBeforeKill() int { return len(d.records) * 3 / 4 }

// awaitKill waits until the broker was killed. The kill waits for the queue,
// so this time is the show's and not the broker's.
func (d *Demo) awaitKill(ctx context.Context, timing *timing) error {
	began := time.Now()
	if err := d.awaitSure(ctx, func() bool { return !d.kill.At.IsZero() }); err != nil {
		return err
	}
	d.update(func() { timing.waited = time.Since(began) })
	return nil
}

// killInTheMiddle kills the broker when half of the records are acknowledged,
// while the rest are on their way, and starts it again. The queue has seen one
// of its workers die by then, and got over it.
func (d *Demo) killInTheMiddle(ctx context.Context, broker Broker) error {
	if err := d.awaitSure(ctx, func() bool {
		return d.published >= len(d.records)/2 && (d.queue.safe || d.queue.over)
	}); err != nil {
		return err
	}
	if err := broker.Kill(); err != nil {
		return err
	}
	d.update(func() { d.kill.At, d.kill.After = time.Now(), d.published })
	if err := broker.Start(ctx); err != nil {
		return err
	}
	now := time.Now()
	d.update(func() {
		d.kill.started = true
		if d.published > d.kill.After {
			d.kill.Back = now // it was quicker than the news of its start
		}
	})
	return nil
}

// replay reads the log from its beginning, as far as it holds what it should.
func (d *Demo) replay(ctx context.Context, c *client.Client) ([][]byte, error) {
	s, err := c.Subscribe(ctx, StreamName, client.From(client.Earliest()))
	if err != nil {
		return nil, fmt.Errorf("read %s again: %w", StreamName, err)
	}
	defer s.Close()
	var again [][]byte
	for len(again) < len(d.records) {
		one, cancel := context.WithTimeout(ctx, patience)
		event, err := s.Next(one)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			return again, nil // the report tells what is missing
		case err != nil:
			return nil, fmt.Errorf("read %s again: %w", StreamName, err)
		}
		again = append(again, append([]byte(nil), event.Payload...))
	}
	return again, nil
}
