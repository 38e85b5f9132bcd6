package felix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
)

// The ways to work on a queue.
const (
	// WayPoll polls a batch and acknowledges all of it, with acknowledgements
	// under way while the next batch is polled.
	WayPoll = "poll"
	// WayConsume has the library poll ahead, call a handler and acknowledge.
	// It drains to the end, however long that takes.
	WayConsume = "consume"
)

const (
	// shard is where the records of a benchmark are: they have no key.
	shard = 0
	// pollWait is how long a poll waits where others hold the last records.
	pollWait = 5 * time.Second
	// acksUnderWay is how many polls of a worker may be acknowledged and not
	// yet answered.
	acksUnderWay = 8
)

// A QueueSpec is a run of workers that share a group and drain a backlog,
// again and again.
type QueueSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	Way    string         `json:"way"`
	// Records is the backlog, published Fill records a batch.
	Records     int `json:"records"`
	Fill        int `json:"fill"`
	RecordBytes int `json:"record_bytes"`
	// Workers have a client each and ask for Batch records at a time.
	Workers int `json:"workers"`
	Batch   int `json:"batch"`
}

// Queue drains the backlog through groups of its own and counts records whose
// acknowledgement was answered.
func Queue(ctx context.Context, spec QueueSpec) (measure.Result, error) {
	work, ok := map[string]worker{WayPoll: pollAndAck, WayConsume: consume}[spec.Way]
	if !ok {
		return measure.Result{}, fmt.Errorf("unknown way to work on a queue %q", spec.Way)
	}
	w, err := spec.Target.hire(ctx, spec.Workers, spec.Records, spec.Fill, spec.RecordBytes)
	if err != nil {
		return measure.Result{}, err
	}
	defer w.close()
	r, err := measure.Rounds(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, budget time.Duration) (measure.Part, error) {
		return w.drain(ctx, spec, work, budget)
	})
	if err != nil {
		return measure.Result{}, err
	}
	r.Window = uint64(spec.Workers * spec.Batch * spec.RecordBytes)
	if spec.Way == WayPoll {
		r.Window *= 1 + acksUnderWay
	}
	r.Note("client", "workers: %d, a client each, %d records a poll, %s", spec.Workers, spec.Batch, spec.Way)
	r.Note("acks", "answered, %.3g flushes for 1,000 of them", measure.FlushesPerThousand.Of(r))
	return r, nil
}

// A worker takes records of a backlog and acknowledges them. It returns when
// its acknowledgements are answered.
type worker func(ctx context.Context, c *client.Client, g *client.Group, batch int, b *measure.Backlog) error

func (w *workforce) drain(ctx context.Context, spec QueueSpec, work worker, budget time.Duration) (measure.Part, error) {
	groups, err := w.open(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	return w.timed(ctx, func() (measure.Part, error) {
		begin := time.Now()
		b := measure.NewBacklog(ctx, spec.Records, budget)
		defer b.Close()
		var workers errgroup.Group
		for i, g := range groups {
			workers.Go(func() error {
				err := work(ctx, w.clients[i], g, spec.Batch, b)
				if err != nil {
					b.Close() // nobody waits for what it would have taken
				}
				return err
			})
		}
		if err := workers.Wait(); err != nil {
			return measure.Part{}, err
		}
		return measure.Part{Records: b.Taken(), Elapsed: time.Since(begin)}, nil
	}, func(part measure.Part) error {
		return w.settle(ctx, groups[0], spec.Records, part.Records, part.Records)
	})
}

// timed does the work of a round, counts the broker's flushes meanwhile, and
// checks what came of it.
func (w *workforce) timed(ctx context.Context, work func() (measure.Part, error), check func(measure.Part) error) (measure.Part, error) {
	before, err := w.target.flushes(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	part, err := work()
	if err != nil {
		return measure.Part{}, err
	}
	after, err := w.target.flushes(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	part.Flushes = after - before
	return part, check(part)
}

func pollAndAck(ctx context.Context, _ *client.Client, g *client.Group, batch int, b *measure.Backlog) error {
	acks, ctx := errgroup.WithContext(ctx)
	acks.SetLimit(acksUnderWay)
	var err error
	for b.Open() {
		var claims []client.Claim
		if claims, err = poll(b.Polls(), g, batch); err != nil {
			if b.Empty() {
				err = nil // others have the last records
			}
			break
		}
		b.Take(len(claims))
		acks.Go(func() error { return g.Ack(ctx, claims...) })
	}
	if aerr := acks.Wait(); aerr != nil {
		err = errors.Join(err, fmt.Errorf("acknowledge: %w", aerr))
	}
	return err
}

// poll claims up to batch records, none of which anybody had before.
func poll(ctx context.Context, g *client.Group, batch int) ([]client.Claim, error) {
	got, err := g.Poll(ctx, client.PollMax(batch), client.PollWait(pollWait))
	if err != nil {
		return nil, fmt.Errorf("poll: %w", err)
	}
	claims := make([]client.Claim, len(got))
	for i, d := range got {
		if err := first(d); err != nil {
			return nil, err
		}
		claims[i] = d.Claim
	}
	return claims, nil
}

// first refuses a record that was handed out before.
func first(d client.Delivery) error {
	if d.Attempts > 1 {
		return fmt.Errorf("record %d was handed out %d times", d.Offset, d.Attempts)
	}
	return nil
}

// consume has the library do the work. The handler that takes the last record
// ends it, and it drains what is under way.
func consume(ctx context.Context, c *client.Client, g *client.Group, _ int, b *measure.Backlog) error {
	err := c.Consume(b.Polls(), g, func(_ context.Context, d client.Delivery) error {
		if err := first(d); err != nil {
			return err
		}
		b.Take(1)
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("consume: %w", err)
	}
	return nil
}
