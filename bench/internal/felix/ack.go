package felix

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// An AckSpec is a run of acknowledgements of records that were polled before
// and are not part of what is timed.
type AckSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	// Records is the backlog, published Fill records a batch; Claimed of them
	// are polled for each round.
	Records     int `json:"records"`
	Fill        int `json:"fill"`
	Claimed     int `json:"claimed"`
	RecordBytes int `json:"record_bytes"`
	// Callers of one client each wait for the answers to ClaimsPerCall
	// acknowledgements at a time.
	Callers       int `json:"callers"`
	ClaimsPerCall int `json:"claims_per_call"`
}

const (
	// claimBatch is the records of one poll that is not timed.
	claimBatch = 1000
	// claimWithin bounds how long it may take to claim the records of a round.
	claimWithin = 20 * time.Second
)

// Acks acknowledges records that were polled before, and counts the flushes
// that this took.
func Acks(ctx context.Context, spec AckSpec) (measure.Result, error) {
	w, err := spec.Target.hire(ctx, 1, spec.Records, spec.Fill, spec.RecordBytes)
	if err != nil {
		return measure.Result{}, err
	}
	defer w.close()
	r, err := measure.Rounds(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, budget time.Duration) (measure.Part, error) {
		return w.ackRound(ctx, spec, budget)
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Note("client", "callers: %d on one client, %d acknowledgements a call, answered", spec.Callers, spec.ClaimsPerCall)
	return r, nil
}

func (w *workforce) ackRound(ctx context.Context, spec AckSpec, budget time.Duration) (measure.Part, error) {
	groups, err := w.open(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	claims, err := claim(ctx, groups[0], spec.Claimed)
	if err != nil {
		return measure.Part{}, fmt.Errorf("claim: %w", err)
	}
	return w.timed(ctx, func() (measure.Part, error) {
		begin := time.Now()
		acked, err := acknowledge(ctx, groups[0], claims, spec.Callers, spec.ClaimsPerCall, begin.Add(budget))
		if err != nil {
			return measure.Part{}, fmt.Errorf("acknowledge: %w", err)
		}
		return measure.Part{Records: acked, Elapsed: time.Since(begin)}, nil
	}, func(part measure.Part) error {
		return w.settle(ctx, groups[0], spec.Records, uint64(len(claims)), part.Records)
	})
}

// claim polls n records and leaves them unacknowledged.
func claim(ctx context.Context, g *client.Group, n int) ([]client.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	claims := make([]client.Claim, 0, n)
	for len(claims) < n {
		more, err := poll(ctx, g, min(claimBatch, n-len(claims)))
		if err != nil {
			return nil, fmt.Errorf("%d of %d claimed: %w", len(claims), n, err)
		}
		claims = append(claims, more...)
	}
	return claims, nil
}

// acknowledge has callers acknowledge claims in their order, each waiting for
// its answers, and returns how many they did: the first so many.
func acknowledge(ctx context.Context, g *client.Group, claims []client.Claim, callers, perCall int, until time.Time) (uint64, error) {
	var next, acked atomic.Uint64
	all := uint64(len(claims))
	workers, ctx := errgroup.WithContext(ctx)
	for range callers {
		workers.Go(func() error {
			for time.Now().Before(until) {
				end := next.Add(uint64(perCall))
				begin := end - uint64(perCall)
				if begin >= all {
					return nil
				}
				mine := claims[begin:min(end, all)]
				if err := g.Ack(ctx, mine...); err != nil {
					return err
				}
				acked.Add(uint64(len(mine)))
			}
			return nil
		})
	}
	err := workers.Wait()
	return acked.Load(), err
}
