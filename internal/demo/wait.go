package demo

import (
	"context"
	"errors"
	"time"
)

// patience is how long a reader may see nothing new before the rest counts as
// missing.
const patience = 8 * time.Second

// update changes the state and wakes who waits for it.
func (d *Demo) update(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	d.moved = time.Now()
	close(d.changed)
	d.changed = make(chan struct{})
}

// await waits until done, which is called under the lock, says so, or until
// nothing has changed for as long as patience lasts: then it is false. A
// failure of any part of the demo ends it.
func (d *Demo) await(ctx context.Context, done func() bool) (bool, error) {
	for {
		d.mu.Lock()
		changed, ok, failed := d.changed, done(), d.err != nil
		d.mu.Unlock()
		if failed {
			return false, errFailed
		}
		if ok {
			return true, nil
		}
		timer := time.NewTimer(patience)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		}
	}
}

// awaitSure is await for what comes, or fails, however long it takes: a process
// starts, for one.
func (d *Demo) awaitSure(ctx context.Context, done func() bool) error {
	for {
		if ok, err := d.await(ctx, done); ok || err != nil {
			return err
		}
	}
}

// askAgain is how long to wait before the broker is asked again for what it
// does not tell by itself.
const askAgain = 50 * time.Millisecond

// ask asks again and again until the answer is true, or until nothing has
// changed for as long as patience lasts.
func (d *Demo) ask(ctx context.Context, question func() (bool, error)) (bool, error) {
	started := time.Now()
	for {
		ok, err := question()
		if ok || err != nil && !passing(err) {
			return ok, err
		}
		d.mu.Lock()
		since, failed := d.moved, d.err != nil
		d.mu.Unlock()
		if failed {
			return false, errFailed
		}
		if since.Before(started) {
			since = started
		}
		if time.Since(since) > patience {
			return false, err
		}
		if err := sleepUntil(ctx, time.Now().Add(askAgain)); err != nil {
			return false, err
		}
	}
}

// sleepUntil waits for a moment, or for the end of ctx.
func sleepUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errFailed ends a part of the demo because another one has failed.
var errFailed = errors.New("another part of the demo failed")

// fail notes that a part of the demo failed, and why.
func (d *Demo) fail(err error) {
	if !errors.Is(err, errFailed) {
		d.update(func() { d.err = errors.Join(d.err, err) })
	}
}

// failure is why the demo failed, if it did.
func (d *Demo) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
