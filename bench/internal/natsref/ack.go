package natsref

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/measure"
)

// An AckSpec is a run of acknowledgements of records that were fetched before
// and are not part of what is timed.
type AckSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	// Records is the backlog of the server's specification; Claimed of them
	// are fetched for each round.
	Records     int `json:"records"`
	Claimed     int `json:"claimed"`
	RecordBytes int `json:"record_bytes"`
	// InFlight acknowledgements wait for an answer at a time, on one
	// connection. With 0 nobody waits for one.
	InFlight int `json:"in_flight"`
}

// claimBatch is the records of one fetch that is not timed.
const claimBatch = 1000

// Acks acknowledges records that were fetched before.
func Acks(ctx context.Context, spec AckSpec) (measure.Result, error) {
	if spec.Claimed > min(maxAckPending, spec.Records) {
		return measure.Result{}, fmt.Errorf("%d records to claim, at most %d are possible", spec.Claimed, min(maxAckPending, spec.Records))
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w, err := spec.Target.hire(ctx, 1, spec.Records, fail)
	if err != nil {
		return measure.Result{}, err
	}
	defer w.close()
	r, err := measure.Rounds(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, budget time.Duration) (measure.Part, error) {
		return w.ackRound(ctx, spec, budget)
	})
	if err != nil {
		return measure.Result{}, errors.Join(err, context.Cause(ctx))
	}
	if spec.InFlight > 0 {
		r.Note("client", "%d acknowledgements in flight on one connection, answered", spec.InFlight)
	} else {
		r.Note("client", "1 worker, acknowledgements that are not answered, timed until the server has counted them")
	}
	return r, nil
}

func (w *workforce) ackRound(ctx context.Context, spec AckSpec, budget time.Duration) (measure.Part, error) {
	handles, err := w.open(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	claims, err := claim(ctx, handles[0], spec.Claimed)
	if err != nil {
		return measure.Part{}, fmt.Errorf("claim: %w", err)
	}
	begin := time.Now()
	settle := confirm
	if spec.InFlight == 0 {
		settle = send
	}
	acked, err := settle(ctx, claims, spec.InFlight, begin.Add(budget))
	if err != nil {
		return measure.Part{}, fmt.Errorf("acknowledge: %w", err)
	}
	info, err := w.landed(ctx, handles[0], acked)
	if err != nil {
		return measure.Part{}, err
	}
	part := measure.Part{Records: acked, Elapsed: time.Since(begin)}
	return part, w.settle(ctx, info, uint64(len(claims)), acked)
}

// claim fetches n records and leaves them unacknowledged.
func claim(ctx context.Context, c jetstream.Consumer, n int) ([]jetstream.Msg, error) {
	b := measure.NewBacklog(ctx, n, landWithin)
	defer b.Close()
	claims := make([]jetstream.Msg, 0, n)
	for b.Open() {
		err := fetch(c, min(claimBatch, n-len(claims)), b, func(msg jetstream.Msg) error {
			claims = append(claims, msg)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(claims) != n {
		return nil, fmt.Errorf("fetched %d records of %d", len(claims), n)
	}
	return claims, nil
}

// confirm has workers acknowledge claims in their order, each waiting for its
// answer, and returns how many they did: the first so many.
func confirm(ctx context.Context, claims []jetstream.Msg, workers int, until time.Time) (uint64, error) {
	var next, acked atomic.Uint64
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error {
			for time.Now().Before(until) {
				i := next.Add(1) - 1
				if i >= uint64(len(claims)) {
					return nil
				}
				if err := claims[i].DoubleAck(ctx); err != nil {
					return err
				}
				acked.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	return acked.Load(), err
}

// send acknowledges claims one after the other without an answer.
func send(_ context.Context, claims []jetstream.Msg, _ int, until time.Time) (uint64, error) {
	for i, c := range claims {
		if !time.Now().Before(until) {
			return uint64(i), nil
		}
		if err := c.Ack(); err != nil {
			return 0, err
		}
	}
	return uint64(len(claims)), nil
}
