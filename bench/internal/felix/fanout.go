package felix

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// A FanoutSpec is a run of one publisher and several subscribers.
type FanoutSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	Subscribers int            `json:"subscribers"`
	// Conns is how many connections the subscribers are spread over. The
	// publisher has one more.
	Conns       int    `json:"conns"`
	Batch       int    `json:"batch"`
	RecordBytes int    `json:"record_bytes"`
	MaxLag      uint64 `json:"max_lag"`
	// Window bounds the payload bytes of the publisher that are not
	// answered yet.
	Window int `json:"window_bytes"`
}

// Fanout publishes acknowledged batches and counts every delivery. A gap
// that the client sees makes the run invalid, as does a count that is off.
func Fanout(ctx context.Context, spec FanoutSpec) (measure.Result, error) {
	pub, err := spec.Target.dial(ctx, client.WithPublishInflight(spec.Window))
	if err != nil {
		return measure.Result{}, err
	}
	defer pub.Close()
	subs, closeSubs, err := subscribe(ctx, spec.Target, spec.Subscribers, spec.Conns)
	if err != nil {
		return measure.Result{}, err
	}
	defer closeSubs()

	tally := measure.NewTally(spec.Subscribers)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	readers, reading := errgroup.WithContext(ctx)
	for i, sub := range subs {
		readers.Go(func() error {
			err := count(reading, sub, tally, i)
			if err != nil {
				fail(err)
			}
			return err
		})
	}
	p := pub.Publisher(frames.Stream)
	payloads := payloadsOf(spec.Batch, spec.RecordBytes)
	done := func(_ client.Ack, err error) {
		if err != nil {
			fail(fmt.Errorf("publish refused: %w", err))
		}
	}
	run := measure.Fanout{Received: tally, Batch: spec.Batch, RecordBytes: spec.RecordBytes, MaxLag: spec.MaxLag}
	r, err := run.Run(ctx, spec.Phases, func(ctx context.Context) error {
		return p.SendFunc(ctx, done, payloads...)
	})
	fail(errDone)
	if werr := readers.Wait(); err == nil && werr != nil {
		err = werr
	}
	if err != nil {
		return measure.Result{}, err
	}
	for _, sub := range subs {
		s := sub.Stats()
		r.Lost += s.Lost + s.Dropped
	}
	r.Note("client", "1 publisher, %d subscribers on %d connections", spec.Subscribers, spec.Conns)
	return r, nil
}

// errDone ends the readers when the run is over.
var errDone = errors.New("run is over")

// subscribe spreads subscriptions over connections.
func subscribe(ctx context.Context, t Target, subscribers, conns int) (subs []*client.Subscription, closeAll func(), err error) {
	var clients []*client.Client
	closeAll = func() {
		for _, c := range clients {
			_ = c.Close() // the run is over; its subscriptions end with it
		}
	}
	for range conns {
		c, err := t.dial(ctx)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, c)
	}
	for i := range subscribers {
		sub, err := clients[i%conns].Subscribe(ctx, frames.Stream)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("subscribe: %w", err)
		}
		subs = append(subs, sub)
	}
	return subs, closeAll, nil
}

// count counts what one subscription delivers until ctx ends.
func count(ctx context.Context, sub *client.Subscription, tally measure.Tally, i int) error {
	for {
		b, err := sub.NextBatch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("subscriber %d: %w", i, err)
		}
		tally.Add(i, uint64(b.Len()))
	}
}
