package measure

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pollEvery is how often a driver looks whether receivers caught up; it
	// bounds the error of a last arrival's time.
	pollEvery = 200 * time.Microsecond
	// lostAfter is how long deliveries may stand still before what is
	// missing counts as lost.
	lostAfter = 3 * time.Second
)

// A Fanout publishes batches and counts every delivery at every receiver.
type Fanout struct {
	// Received is what the receivers count into.
	Received Tally
	// Batch is the records of one batch, RecordBytes the payload of each.
	Batch       int
	RecordBytes int
	// MaxLag is how many records the publisher may be ahead of the slowest
	// receiver. It is generous enough to keep every queue on the way busy,
	// and keeps a rival that drops for slow readers from having to.
	MaxLag uint64
}

// Run publishes through the warm-up and the measured part, then waits until
// everything published has arrived. The rate counts deliveries from the end
// of the warm-up to the last arrival. What has not come when deliveries stand
// still is reported as lost.
func (f Fanout) Run(ctx context.Context, p Phases, publish func(ctx context.Context) error) (Result, error) {
	var published uint64
	send := func(until time.Time) error {
		for time.Now().Before(until) {
			if err := publish(ctx); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			published += uint64(f.Batch)
			if err := f.wait(ctx, func() bool { return published-min(published, f.Received.Min()) <= f.MaxLag }); err != nil {
				return err
			}
		}
		return nil
	}
	err := send(time.Now().Add(p.Warmup))
	before, begin := f.Received.Sum(), time.Now()
	if err == nil {
		err = send(begin.Add(p.Measure))
	}
	owed := func() uint64 { return published * uint64(len(f.Received)) }
	if err == nil {
		err = f.wait(ctx, func() bool { return f.Received.Sum() >= owed() })
	}
	if err != nil && !errors.Is(err, errStill) {
		return Result{}, err
	}
	got := f.Received.Sum()
	r := Result{
		Records: got - before,
		Bytes:   (got - before) * uint64(f.RecordBytes),
		Elapsed: time.Since(begin),
		Window:  f.MaxLag * uint64(f.RecordBytes*len(f.Received)),
	}
	r.Lost = owed() - min(owed(), got)
	r.Repeated = got - min(owed(), got)
	return r, nil
}

// errStill says that deliveries stopped coming.
var errStill = errors.New("deliveries stand still")

// wait polls done until it holds. It fails when nothing arrives for a while.
func (f Fanout) wait(ctx context.Context, done func() bool) error {
	var seen uint64
	moved := time.Now()
	for !done() {
		if n := f.Received.Sum(); n != seen {
			seen, moved = n, time.Now()
		} else if time.Since(moved) > lostAfter {
			return errStill
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
	return nil
}
