package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/client"
)

// publish sends every record, keyed by its network, each to be stored exactly
// once: a record whose answer the kill took away is sent again under its number.
func (d *Demo) publish(ctx context.Context, c *client.Client, timing *timing) error {
	publisher, err := c.NewProducer(ctx, StreamName)
	if err != nil {
		return fmt.Errorf("begin to publish: %w", err)
	}
	started := time.Now()
	for i, record := range d.records {
		if d.speed > 0 {
			due := started.Add(time.Duration(float64(i) / d.speed * float64(time.Second)))
			if err := sleepUntil(ctx, due); err != nil {
				return err
			}
		}
		if i == d.lastBeforeKill() {
			if err := d.awaitKill(ctx, timing); err != nil {
				return err
			}
		}
		quake, err := parse(record)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		d.update(func() { timing.sent[i] = time.Now() })
		err = publisher.SendKeyedFunc(ctx, []byte(quake.Net), func(_ client.Ack, err error) {
			now := time.Now()
			d.update(func() {
				if err != nil {
					d.err = errors.Join(d.err, fmt.Errorf("publish record %d: %w", i, err))
					return
				}
				d.published++
				timing.lastAck = now
				d.kill.answered(now)
			})
		}, record)
		if err != nil {
			return fmt.Errorf("publish record %d: %w", i, err)
		}
		if d.failure() != nil {
			return errFailed
		}
	}
	return publisher.Flush(ctx)
}
