package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/client"
)

// The workers of the group: one that will be killed, and one that lives.
const (
	doomed   = "worker-1"
	survivor = "worker-2"
)

// handlers is how many records the surviving worker has in hand at once. The
// other has one, so that everything it has claimed waits behind the quake it
// sits on.
const handlers = 4

// maxHeld bounds the claims looked at when the worker is killed.
const maxHeld = 1000

// runQueue has two workers share the log, kills one with claims in its hands,
// sees the poison given up, and puts it back in play once the worker can do
// it. It returns when the group has finished the log, or nothing moves any
// more; the report tells which.
func (d *Demo) runQueue(ctx context.Context, c *client.Client, broker Broker, timing *timing) (err error) {
	defer d.update(func() { d.queue.over = true })
	group := c.Group(StreamName, GroupName)
	first, err := d.hire(broker, orders{Name: doomed, Handlers: 1, Hold: true}, timing)
	if err != nil {
		return err
	}
	gone := false
	defer func() {
		if !gone {
			err = errors.Join(err, first.kill())
		}
	}()
	if err := d.awaitSure(ctx, func() bool { return d.queue.ready[doomed] }); err != nil {
		return err
	}
	if ok, err := d.await(ctx, func() bool { return d.queue.holding }); !ok {
		return err
	}
	second, err := d.hire(broker, orders{Name: survivor, Handlers: handlers}, timing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.dismiss()) }()
	if err := d.awaitSure(ctx, func() bool { return d.queue.ready[survivor] && d.published >= len(d.records)/4 }); err != nil {
		return err
	}
	gone = true
	if err := d.killWorker(ctx, group, first); err != nil {
		return err
	}
	if ok, err := d.await(ctx, func() bool { return d.queue.recovered() }); !ok {
		return err
	}
	if ok, err := d.passHeld(ctx, group); !ok {
		return err
	}
	// The broker is killed in between, see killInTheMiddle.
	if err := d.awaitSure(ctx, func() bool { return d.kill.Done() }); err != nil {
		return err
	}
	if ok, err := d.redrive(ctx, group, second); !ok {
		return err
	}
	_, err = d.ask(ctx, func() (bool, error) {
		info, err := group.Describe(ctx, 0)
		if err != nil {
			return false, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queue.end = info
		return d.queue.atEnd(len(d.records)), nil
	})
	return err
}

// hire starts a worker that reports to the demo.
func (d *Demo) hire(broker Broker, o orders, timing *timing) (*hand, error) {
	o.Broker, o.Poison = broker.Access(), d.queue.Poison.Offset
	h, err := hire(d.worker, o, func(said deed) {
		now := time.Now()
		d.update(func() { d.queue.note(o.Name, said, now, timing) })
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-h.ended
		if h.killed.Load() {
			return
		}
		if err := h.failure(); err != nil {
			d.fail(err)
		}
	}()
	return h, nil
}

// killWorker kills a worker and notes which claims it had.
func (d *Demo) killWorker(ctx context.Context, group *client.Group, h *hand) error {
	had := make(map[uint64]uint32)
	_, err := d.ask(ctx, func() (bool, error) {
		info, err := group.Describe(ctx, 0, client.DescribeHeld(0, maxHeld))
		if err != nil {
			return false, err
		}
		for _, held := range info.Held {
			if held.State == client.HeldClaimed && held.Consumer == h.name {
				had[held.Offset] = held.Attempts
			}
		}
		d.update(func() { d.queue.maxAttempts = info.MaxAttempts })
		return true, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("ask what %s holds: %w", h.name, err), h.kill())
	}
	at := time.Now()
	if err := h.kill(); err != nil {
		return err
	}
	d.update(func() { d.queue.killed(had, at, time.Now()) })
	return nil
}

// passHeld waits until the cursor is beyond what the killed worker had: what
// is finished above the cursor is handed out again after a kill of the broker.
func (d *Demo) passHeld(ctx context.Context, group *client.Group) (bool, error) {
	var last uint64
	for offset := range d.queue.held {
		last = max(last, offset)
	}
	ok, err := d.ask(ctx, func() (bool, error) {
		info, err := group.Describe(ctx, 0)
		return err == nil && (info.Committed > last || info.Committed == d.queue.Poison.Offset), err
	})
	if ok {
		d.update(func() { d.queue.safe = true })
	}
	return ok, err
}

// redrive waits until the poison was given up and puts it back in play, for a
// worker that can do it now. It is false if that is not to be.
func (d *Demo) redrive(ctx context.Context, group *client.Group, h *hand) (bool, error) {
	ok, err := d.ask(ctx, func() (bool, error) {
		letters, err := group.DeadLetters(ctx, 0)
		if err != nil || len(letters) == 0 {
			return false, err
		}
		d.update(func() {
			d.queue.letters = len(letters)
			d.queue.Poison.GivenUp = letters[0] == d.queue.Poison.Offset
		})
		return true, nil
	})
	if !ok {
		return false, err
	}
	if err := h.mend(); err != nil {
		return false, err
	}
	if ok, err := d.await(ctx, func() bool { return d.queue.mended }); !ok {
		return false, err
	}
	d.update(func() { d.queue.Poison.Redriven = true })
	if err := group.Redrive(ctx, 0, d.queue.Poison.Offset); err != nil {
		return false, fmt.Errorf("put record %d back in play: %w", d.queue.Poison.Offset, err)
	}
	return true, nil
}
