package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/client"
)

// Ingest measures acknowledged publishing: Concurrency publishers send
// batches to one stream, each with up to InFlight of them unanswered.
type Ingest struct {
	Stream       string
	Total        uint64 // messages measured, unless Duration ends it sooner
	Warmup       uint64 // messages before that
	PayloadBytes int
	Concurrency  int           // publishers
	Batch        int           // messages a batch
	InFlight     int           // batches a publisher has unanswered at most
	Keys         int           // distinct routing keys, a batch each in turn; 0 for none
	Duration     time.Duration // ends the measurement; 0 for Total alone
}

// IngestResult is what Ingest measured.
type IngestResult struct {
	Bench          string  `json:"bench"`
	Stream         string  `json:"stream"`
	Messages       uint64  `json:"messages"`
	Bytes          uint64  `json:"bytes"`
	Seconds        float64 `json:"seconds"`
	Rate           float64 `json:"messages_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	// Refused counts messages the broker turned away for want of room.
	Refused uint64 `json:"refused"`
	// BatchLatencyUS runs from handing a batch over to its acknowledgement.
	BatchLatencyUS Quantiles `json:"batch_latency_us"`
	Warmup         uint64    `json:"warmup"`
	PayloadBytes   int       `json:"payload_bytes"`
	Concurrency    int       `json:"concurrency"`
	Batch          int       `json:"batch"`
	InFlight       int       `json:"in_flight"`
	Keys           int       `json:"keys"`
	Loop           string    `json:"loop"`
}

func (b Ingest) check() error {
	return check(
		bound{"total", b.Total, 1, maxMessages},
		bound{"warmup", b.Warmup, 0, maxMessages},
		bound{"payload-bytes", uint64(b.PayloadBytes), 0, maxPayload},
		bound{"concurrency", uint64(b.Concurrency), 1, maxConcurrency},
		bound{"batch", uint64(b.Batch), 1, maxBatch},
		bound{"batch bytes", uint64(b.Batch) * uint64(b.PayloadBytes), 0, maxPayload},
		bound{"in-flight", uint64(b.InFlight), 1, maxInFlight},
		bound{"keys", uint64(b.Keys), 0, maxKeys},
	)
}

// Run measures. progress is told of messages as they are acknowledged, from
// any goroutine.
func (b Ingest) Run(ctx context.Context, c *client.Client, progress func(n uint64)) (IngestResult, error) {
	if err := b.check(); err != nil {
		return IngestResult{}, err
	}
	run := ingestRun{Ingest: b, client: c, clock: newStopwatch(), progress: func(uint64) {}}
	if b.Warmup > 0 {
		warm := b
		warm.Total, warm.Duration = b.Warmup, 0
		run.Ingest = warm
		if err := run.phase(ctx); err != nil {
			return IngestResult{}, err
		}
	}
	run = ingestRun{Ingest: b, client: c, clock: newStopwatch(), progress: progress}
	if err := run.phase(ctx); err != nil {
		return IngestResult{}, err
	}
	messages := run.acked.Load()
	took := run.lastAck.time()
	size := messages * uint64(b.PayloadBytes)
	return IngestResult{
		Bench: "ingest", Stream: b.Stream,
		Messages: messages, Bytes: size, Seconds: took.Seconds(),
		Rate: perSecond(messages, took), BytesPerSecond: perSecond(size, took),
		Refused: run.refused.Load(), BatchLatencyUS: run.latency.quantiles(),
		Warmup: b.Warmup, PayloadBytes: b.PayloadBytes, Concurrency: b.Concurrency,
		Batch: b.Batch, InFlight: b.InFlight, Keys: b.Keys, Loop: loopClosed,
	}, nil
}

// An ingestRun is one phase of an ingest, from its first send on.
type ingestRun struct {
	Ingest
	client   *client.Client
	clock    stopwatch
	progress func(uint64)

	taken   atomic.Uint64 // messages handed to publishers
	acked   atomic.Uint64
	refused atomic.Uint64
	lastAck latest
	latency *recorder

	mu  sync.Mutex
	err error
}

// phase runs all publishers to their end.
func (r *ingestRun) phase(ctx context.Context) error {
	r.latency = newRecorder()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	recorders := make([]*recorder, r.Concurrency)
	var group sync.WaitGroup
	for i := range r.Concurrency {
		recorders[i] = newRecorder()
		group.Go(func() {
			if err := r.publisher(ctx, i, recorders[i]); err != nil {
				r.fail(err)
				cancel()
			}
		})
	}
	group.Wait()
	for _, one := range recorders {
		r.latency.merge(one)
	}
	return r.failure()
}

// publisher sends batches until the total is reached or the time is over.
func (r *ingestRun) publisher(ctx context.Context, index int, times *recorder) error {
	publisher := r.client.Publisher(r.Stream, client.WithAck(client.AckPerBatch))
	payloads := make([][]byte, r.Batch)
	payload := noise(r.PayloadBytes)
	for i := range payloads {
		payloads[i] = payload
	}
	keys := makeKeys(r.Keys)
	room := make(chan struct{}, r.InFlight)
	for turn := index; ; turn++ {
		n := r.take()
		if n == 0 {
			break
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		sent := r.clock.now()
		done := func(_ client.Ack, err error) {
			r.answered(uint64(n), sent, err, times)
			<-room
		}
		var err error
		if len(keys) > 0 {
			err = publisher.SendKeyedFunc(ctx, keys[turn%len(keys)], done, payloads[:n]...)
		} else {
			err = publisher.SendFunc(ctx, done, payloads[:n]...)
		}
		if err != nil {
			return err
		}
		if err := r.failure(); err != nil {
			return err
		}
	}
	// A refusal was counted when it came; only an end of the connection or
	// of ctx before the answers is new here.
	if err := publisher.Flush(ctx); err != nil && !refused(err) {
		return err
	}
	return nil
}

// take claims the next messages to send: a batch, less at the end, 0 after it.
func (r *ingestRun) take() int {
	if r.Duration > 0 && r.clock.now() >= r.Duration {
		return 0
	}
	end := r.taken.Add(uint64(r.Batch))
	begin := end - uint64(r.Batch)
	if begin >= r.Total {
		return 0
	}
	return int(min(end, r.Total) - begin)
}

// answered takes the answer to a batch of n messages.
func (r *ingestRun) answered(n uint64, sent time.Duration, err error, times *recorder) {
	now := r.clock.now()
	r.lastAck.tell(now)
	switch {
	case err == nil:
		r.acked.Add(n)
		times.record(now - sent)
		r.progress(n)
	case refused(err):
		r.refused.Add(n)
		r.progress(n)
	default:
		r.fail(err)
	}
}

func (r *ingestRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *ingestRun) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
