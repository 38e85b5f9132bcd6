package natsref

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/measure"
)

// The ways to work on a queue.
const (
	// WayFetch fetches a batch and acknowledges each record of it, with
	// acknowledgements that the server does not answer: the plain Ack.
	WayFetch = "fetch"
	// WayFetchAnswered waits for the answer to each acknowledgement, with a
	// batch of them under way while the next batch is fetched: DoubleAck.
	WayFetchAnswered = "fetch-answered"
	// WayConsume has the library fetch ahead and call a handler, which
	// acknowledges with Ack. It drains to the end, however long that takes.
	WayConsume = "consume"
)

// A QueueSpec is a run of workers that share one durable pull consumer and
// drain a backlog, again and again.
type QueueSpec struct {
	Target Target         `json:"target"`
	Phases measure.Phases `json:"phases"`
	Way    string         `json:"way"`
	// Records is the backlog of the server's specification.
	Records     int `json:"records"`
	RecordBytes int `json:"record_bytes"`
	// Workers have a connection each and ask for Batch records at a time.
	Workers int `json:"workers"`
	Batch   int `json:"batch"`
}

// Queue drains the backlog through consumers of its own and counts records
// that were acknowledged, once the server has counted them too.
func Queue(ctx context.Context, spec QueueSpec) (measure.Result, error) {
	work, ok := map[string]worker{WayFetch: fetchAndAck, WayFetchAnswered: fetchAndConfirm, WayConsume: consumeAndAck}[spec.Way]
	if !ok {
		return measure.Result{}, fmt.Errorf("unknown way to work on a queue %q", spec.Way)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w, err := spec.Target.hire(ctx, spec.Workers, spec.Records, fail)
	if err != nil {
		return measure.Result{}, err
	}
	defer w.close()
	r, err := measure.Rounds(ctx, spec.Phases, spec.RecordBytes, func(ctx context.Context, budget time.Duration) (measure.Part, error) {
		return w.drain(ctx, spec, work, budget)
	})
	if err != nil {
		return measure.Result{}, errors.Join(err, context.Cause(ctx))
	}
	r.Window = uint64(spec.Workers * spec.Batch * spec.RecordBytes)
	r.Note("client", "workers: %d, a connection each, %d records a fetch, %s", spec.Workers, spec.Batch, spec.Way)
	r.Note("acks", "%s; the consumer's state goes to its file ten times a second, whatever was answered", answered(spec.Way))
	return r, nil
}

func answered(way string) string {
	if way == WayFetchAnswered {
		return "answered by the server"
	}
	return "not answered"
}

// A worker takes records of a backlog and acknowledges them.
type worker func(ctx context.Context, c jetstream.Consumer, batch int, b *measure.Backlog) error

func (w *workforce) drain(ctx context.Context, spec QueueSpec, work worker, budget time.Duration) (measure.Part, error) {
	handles, err := w.open(ctx)
	if err != nil {
		return measure.Part{}, err
	}
	begin := time.Now()
	b := measure.NewBacklog(ctx, spec.Records, budget)
	defer b.Close()
	var workers errgroup.Group
	for _, c := range handles {
		workers.Go(func() error {
			err := work(ctx, c, spec.Batch, b)
			if err != nil {
				b.Close() // nobody waits for what it would have taken
			}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return measure.Part{}, err
	}
	info, err := w.landed(ctx, handles[0], b.Taken())
	if err != nil {
		return measure.Part{}, err
	}
	part := measure.Part{Records: b.Taken(), Elapsed: time.Since(begin)}
	return part, w.settle(ctx, info, part.Records, part.Records)
}

// fetch calls take with every record of one fetch. It waits for a full batch,
// or until the backlog is empty.
func fetch(c jetstream.Consumer, batch int, b *measure.Backlog, take func(jetstream.Msg) error) error {
	msgs, err := c.Fetch(batch, jetstream.FetchContext(b.Polls()))
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	for msg := range msgs.Messages() {
		b.Take(1)
		if err := take(msg); err != nil {
			return err
		}
	}
	if err := msgs.Error(); err != nil && !b.Empty() {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}

func fetchAndAck(_ context.Context, c jetstream.Consumer, batch int, b *measure.Backlog) error {
	for b.Open() {
		if err := fetch(c, batch, b, jetstream.Msg.Ack); err != nil {
			return err
		}
	}
	return nil
}

func fetchAndConfirm(ctx context.Context, c jetstream.Consumer, batch int, b *measure.Backlog) error {
	acks, ctx := errgroup.WithContext(ctx)
	acks.SetLimit(batch)
	var err error
	for err == nil && b.Open() {
		err = fetch(c, batch, b, func(msg jetstream.Msg) error {
			acks.Go(func() error { return msg.DoubleAck(ctx) })
			return nil
		})
	}
	return errors.Join(err, acks.Wait())
}

// consumeAndAck drains to the end: what the library has fetched ahead when
// it is stopped would come again.
func consumeAndAck(ctx context.Context, c jetstream.Consumer, _ int, b *measure.Backlog) error {
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default: // an earlier one tells enough
		}
	}
	consuming, err := c.Consume(func(msg jetstream.Msg) {
		if err := msg.Ack(); err != nil {
			fail(err)
		}
		b.Take(1)
	}, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { fail(err) }))
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	defer consuming.Stop()
	select {
	case <-b.Polls().Done():
		return context.Cause(ctx)
	case err := <-failed:
		return fmt.Errorf("consume: %w", err)
	}
}
