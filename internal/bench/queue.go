package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/client"
)

// Queue measures workers that share a consumer group: it publishes messages
// that nobody times, then has Concurrency workers poll and acknowledge them.
// The group is one of this run's own and is deleted at its end; the messages
// stay in the stream.
type Queue struct {
	Stream       string
	Total        uint64 // messages measured
	Warmup       uint64 // messages before that
	PayloadBytes int
	Concurrency  int // workers
	Batch        int // messages a poll asks for
	// AcksInFlight is how many polls a worker has acknowledged and not yet
	// been answered for, while it goes on polling.
	AcksInFlight int
}

// QueueResult is what Queue measured.
type QueueResult struct {
	Bench          string  `json:"bench"`
	Stream         string  `json:"stream"`
	Messages       uint64  `json:"messages"` // polled and acknowledged
	Bytes          uint64  `json:"bytes"`
	Seconds        float64 `json:"seconds"` // first poll to last answer
	Rate           float64 `json:"messages_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	// Redelivered counts messages that were handed out again, because their
	// claims lapsed say.
	Redelivered uint64 `json:"redelivered"`
	// Unfinished counts messages that the broker does not hold for finished
	// though every acknowledgement was answered. It is not 0 when others
	// publish to the stream meanwhile.
	Unfinished uint64 `json:"unfinished"`
	// PollLatencyUS runs from a poll to its messages, AckLatencyUS from
	// acknowledging the messages of a poll to the last answer.
	PollLatencyUS Quantiles `json:"poll_latency_us"`
	AckLatencyUS  Quantiles `json:"ack_latency_us"`
	Warmup        uint64    `json:"warmup"`
	PayloadBytes  int       `json:"payload_bytes"`
	Concurrency   int       `json:"concurrency"`
	Batch         int       `json:"batch"`
	AcksInFlight  int       `json:"acks_in_flight"`
	Loop          string    `json:"loop"`
}

const (
	// maxPoll is the most messages one poll may ask for.
	maxPoll = 1000
	// queueShard is where messages without a key are.
	queueShard = 0
	// queueWait is how long a poll waits for messages that others may hold.
	queueWait = time.Second
)

func (b Queue) check() error {
	return check(
		bound{"total", b.Total, 1, maxMessages},
		bound{"warmup", b.Warmup, 0, maxMessages},
		bound{"payload-bytes", uint64(b.PayloadBytes), 0, maxPayload / fillBatch},
		bound{"concurrency", uint64(b.Concurrency), 1, maxConcurrency},
		bound{"batch", uint64(b.Batch), 1, maxPoll},
		bound{"acks-in-flight", uint64(b.AcksInFlight), 1, maxInFlight},
	)
}

// Run measures on a stream with a log; on another it fails with
// [client.ErrUnsupported]. progress is told of messages acknowledged.
func (b Queue) Run(ctx context.Context, c *client.Client, progress func(n uint64)) (QueueResult, error) {
	if err := b.check(); err != nil {
		return QueueResult{}, err
	}
	group := c.Group(b.Stream, fmt.Sprintf("felix-bench-%x", rand.Uint64()))
	if _, err := group.Create(ctx, queueShard, client.Latest()); err != nil {
		return QueueResult{}, fmt.Errorf("create group: %w", err)
	}
	r, err := b.measure(ctx, c, group, progress)
	// Also when ctx has ended: a group left behind is the user's to find.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupWithin)
	defer cancel()
	if _, derr := group.Delete(cleanup, queueShard); derr != nil && err == nil {
		err = fmt.Errorf("delete group: %w", derr)
	}
	return r, err
}

// cleanupWithin bounds the removal of what a run made.
const cleanupWithin = 5 * time.Second

func (b Queue) measure(ctx context.Context, c *client.Client, group *client.Group, progress func(n uint64)) (QueueResult, error) {
	if b.Warmup > 0 {
		if _, err := b.phase(ctx, c, group, b.Warmup, func(uint64) {}); err != nil {
			return QueueResult{}, err
		}
	}
	run, err := b.phase(ctx, c, group, b.Total, progress)
	if err != nil {
		return QueueResult{}, err
	}
	info, err := group.Describe(ctx, queueShard)
	if err != nil {
		return QueueResult{}, fmt.Errorf("describe group: %w", err)
	}
	messages, took := run.acked.Load(), run.last.time()
	size := messages * uint64(b.PayloadBytes)
	return QueueResult{
		Bench: "queue", Stream: b.Stream, Messages: messages, Bytes: size, Seconds: took.Seconds(),
		Rate: perSecond(messages, took), BytesPerSecond: perSecond(size, took),
		Redelivered: run.redelivered.Load(), Unfinished: info.Lag(),
		PollLatencyUS: run.polls.quantiles(), AckLatencyUS: run.acks.quantiles(),
		Warmup: b.Warmup, PayloadBytes: b.PayloadBytes, Concurrency: b.Concurrency,
		Batch: b.Batch, AcksInFlight: b.AcksInFlight, Loop: loopClosed,
	}, nil
}

const (
	// fillBatch and fillInFlight publish the messages that a phase drains.
	fillBatch    = 64
	fillInFlight = 16
)

// A queueRun is one phase of a queue run: messages published ahead, and the
// workers that drain them.
type queueRun struct {
	Queue
	group    *client.Group
	total    uint64
	clock    stopwatch
	progress func(uint64)
	polling  context.Context // ends when all messages were taken
	allTaken context.CancelFunc

	taken, acked, redelivered atomic.Uint64
	last                      latest
	polls, acks               *recorder
}

func (b Queue) phase(ctx context.Context, c *client.Client, group *client.Group, total uint64, progress func(uint64)) (*queueRun, error) {
	fill := Ingest{Stream: b.Stream, Total: total, PayloadBytes: b.PayloadBytes, Concurrency: 1, Batch: fillBatch, InFlight: fillInFlight}
	filled, err := fill.Run(ctx, c, func(uint64) {})
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	workers, wctx := errgroup.WithContext(ctx)
	r := &queueRun{
		Queue: b, group: group, total: filled.Messages, clock: newStopwatch(), progress: progress,
		polls: newRecorder(), acks: newRecorder(),
	}
	r.polling, r.allTaken = context.WithCancel(wctx)
	defer r.allTaken()
	for range b.Concurrency {
		workers.Go(func() error { return r.worker(wctx) })
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	return r, nil
}

// worker polls and acknowledges until every message was taken.
func (r *queueRun) worker(ctx context.Context) error {
	acks, actx := errgroup.WithContext(ctx)
	acks.SetLimit(r.AcksInFlight)
	var err error
	for r.taken.Load() < r.total {
		sent := r.clock.now()
		var got []client.Delivery
		got, err = r.group.Poll(r.polling, client.PollMax(r.Batch), client.PollWait(queueWait))
		if err != nil {
			if r.taken.Load() >= r.total {
				err = nil // others have the last messages
			}
			break
		}
		r.polls.record(r.clock.now() - sent)
		claims := r.take(got)
		acks.Go(func() error { return r.acknowledge(actx, claims) })
	}
	if aerr := acks.Wait(); aerr != nil {
		return fmt.Errorf("acknowledge: %w", aerr)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("poll: %w", err), context.Cause(ctx))
	}
	return nil
}

// take counts the messages of a poll.
func (r *queueRun) take(got []client.Delivery) []client.Claim {
	claims := make([]client.Claim, len(got))
	var again uint64
	for i, d := range got {
		claims[i] = d.Claim
		if d.Attempts > 1 {
			again++
		}
	}
	r.redelivered.Add(again)
	if r.taken.Add(uint64(len(got))-again) >= r.total {
		r.allTaken()
	}
	return claims
}

// acknowledge waits for the answers to the acknowledgements of one poll.
func (r *queueRun) acknowledge(ctx context.Context, claims []client.Claim) error {
	if len(claims) == 0 {
		return nil
	}
	sent := r.clock.now()
	if err := r.group.Ack(ctx, claims...); err != nil {
		return err
	}
	now := r.clock.now()
	r.acks.record(now - sent)
	r.last.tell(now)
	r.acked.Add(uint64(len(claims)))
	r.progress(uint64(len(claims)))
	return nil
}
