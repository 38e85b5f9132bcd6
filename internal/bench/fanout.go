package bench

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/client"
)

// Fanout measures delivery of one stream to many subscribers.
type Fanout struct {
	Stream       string
	Fanout       int    // subscribers
	Total        uint64 // messages measured
	Warmup       uint64 // messages before that
	PayloadBytes int
	Batch        int // messages a batch
	InFlight     int // batches unanswered at most
	Connections  int // connections the subscribers are spread over
	// Window holds the publisher back while the slowest subscriber is this
	// many messages behind; 0 never does, and a subscriber that cannot keep
	// up then loses messages.
	Window uint64
}

// FanoutResult is what Fanout measured.
type FanoutResult struct {
	Bench       string  `json:"bench"`
	Stream      string  `json:"stream"`
	Subscribers int     `json:"subscribers"`
	Published   uint64  `json:"published"`
	PublishRate float64 `json:"published_per_second"`
	Refused     uint64  `json:"refused"`
	// Delivered counts messages over all subscribers, Lost what is missing
	// of published times subscribers.
	Delivered      uint64 `json:"delivered"`
	DeliveredBytes uint64 `json:"delivered_bytes"`
	Lost           uint64 `json:"lost"`
	OutOfOrder     uint64 `json:"out_of_order"`
	// Seconds runs from the first send to the last arrival.
	Seconds        float64 `json:"seconds"`
	DeliveredRate  float64 `json:"delivered_per_second"`
	BytesPerSecond float64 `json:"delivered_bytes_per_second"`
	// DeliveryLatencyUS runs from handing a batch over to its arrival.
	DeliveryLatencyUS Quantiles `json:"delivery_latency_us"`
	Warmup            uint64    `json:"warmup"`
	PayloadBytes      int       `json:"payload_bytes"`
	Batch             int       `json:"batch"`
	InFlight          int       `json:"in_flight"`
	Connections       int       `json:"connections"`
	Window            uint64    `json:"window"`
	Loop              string    `json:"loop"`
}

func (b Fanout) check() error {
	return check(
		bound{"fanout", uint64(b.Fanout), 1, maxFanout},
		bound{"total", b.Total, 1, maxMessages},
		bound{"warmup", b.Warmup, 0, maxMessages},
		bound{"payload-bytes", uint64(b.PayloadBytes), messageHead, maxPayload},
		bound{"batch", uint64(b.Batch), 1, maxBatch},
		bound{"batch bytes", uint64(b.Batch) * uint64(b.PayloadBytes), 0, maxPayload},
		bound{"in-flight", uint64(b.InFlight), 1, maxInFlight},
		bound{"connections", uint64(b.Connections), 1, maxConnections},
	)
}

// A Dialer opens one client.
type Dialer func(ctx context.Context) (*client.Client, error)

// Run measures. The publisher has a client of its own, the subscribers share
// Connections others. progress is told of deliveries.
func (b Fanout) Run(ctx context.Context, dial Dialer, progress func(delivered uint64)) (FanoutResult, error) {
	if err := b.check(); err != nil {
		return FanoutResult{}, err
	}
	var clients []*client.Client
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for range 1 + min(b.Connections, b.Fanout) {
		c, err := dial(ctx)
		if err != nil {
			return FanoutResult{}, err
		}
		clients = append(clients, c)
	}
	clock := newStopwatch()
	run := rand.Uint64()
	readers, err := gather(ctx, clients[1:], b.Stream, b.Fanout, run, b.Warmup, clock)
	if err != nil {
		return FanoutResult{}, err
	}
	defer readers.disperse()

	warm := func(s *subscriber) uint64 { return s.warm.Load() }
	seen := func(s *subscriber) uint64 { return s.seen.Load() }
	reached := func(s *subscriber) uint64 { return s.reached.Load() }
	sender := &fanoutSender{
		Fanout: b, publisher: clients[0].Publisher(b.Stream), clock: clock, run: run,
		payloads: make([][]byte, b.Batch), room: make(chan struct{}, b.InFlight),
	}
	for i := range sender.payloads {
		sender.payloads[i] = noise(b.PayloadBytes)
	}
	behind := func(sent uint64) error {
		if b.Window == 0 {
			return nil
		}
		return readers.wait(ctx, func() bool { return sent < b.Window+readers.least(reached) })
	}
	if err := sender.send(ctx, 0, b.Warmup, behind); err != nil {
		return FanoutResult{}, err
	}
	if err := readers.wait(ctx, func() bool { return readers.least(warm) >= b.Warmup }); err != nil {
		return FanoutResult{}, err
	}
	stopProgress := follow(progress, func() uint64 { return readers.sum(seen) })
	defer stopProgress()
	begin := clock.now()
	sender.acked.Store(0)
	sender.refused.Store(0)
	if err := sender.send(ctx, b.Warmup, b.Warmup+b.Total, behind); err != nil {
		return FanoutResult{}, err
	}
	acked := sender.acked.Load()
	if err := readers.wait(ctx, func() bool { return readers.least(seen) >= acked }); err != nil {
		return FanoutResult{}, err
	}
	readers.disperse()
	times := newRecorder()
	for _, member := range readers.members {
		times.merge(member.times)
	}
	delivered, expected := readers.sum(seen), acked*uint64(b.Fanout)
	bytes := readers.sum(func(s *subscriber) uint64 { return s.bytes.Load() })
	took := readers.arrival.time() - begin
	return FanoutResult{
		Bench: "fanout", Stream: b.Stream, Subscribers: b.Fanout,
		Published: acked, PublishRate: perSecond(acked, sender.lastAck.time()-begin), Refused: sender.refused.Load(),
		Delivered: delivered, DeliveredBytes: bytes, Lost: expected - min(delivered, expected),
		OutOfOrder: readers.sum(func(s *subscriber) uint64 { return s.disorder.Load() }),
		Seconds:    max(took, 0).Seconds(), DeliveredRate: perSecond(delivered, took), BytesPerSecond: perSecond(bytes, took),
		DeliveryLatencyUS: times.quantiles(),
		Warmup:            b.Warmup, PayloadBytes: b.PayloadBytes, Batch: b.Batch, InFlight: b.InFlight,
		Connections: min(b.Connections, b.Fanout), Window: b.Window, Loop: loopClosed,
	}, nil
}

// A fanoutSender publishes numbered messages.
type fanoutSender struct {
	Fanout
	publisher *client.Publisher
	clock     stopwatch
	run       uint64
	payloads  [][]byte
	room      chan struct{}

	acked   atomic.Uint64
	refused atomic.Uint64
	lastAck latest
	failed  atomic.Pointer[error]
}

// send publishes the messages from (inclusive) to (exclusive) and waits for
// their answers. Before each batch it asks behind whether to go on.
func (s *fanoutSender) send(ctx context.Context, from, to uint64, behind func(sent uint64) error) error {
	for at := from; at < to; {
		if err := behind(at); err != nil {
			return err
		}
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n := min(uint64(s.Batch), to-at)
		sent := s.clock.now()
		for i := range n {
			message{run: s.run, sequence: at + i, sent: sent}.put(s.payloads[i])
		}
		err := s.publisher.SendFunc(ctx, func(_ client.Ack, err error) {
			s.answered(n, err)
			<-s.room
		}, s.payloads[:n]...)
		if err != nil {
			return err
		}
		if err := s.failed.Load(); err != nil {
			return *err
		}
		at += n
	}
	if err := s.publisher.Flush(ctx); err != nil && !refused(err) {
		return err
	}
	return nil
}

func (s *fanoutSender) answered(n uint64, err error) {
	s.lastAck.tell(s.clock.now())
	switch {
	case err == nil:
		s.acked.Add(n)
	case refused(err):
		s.refused.Add(n)
	default:
		s.failed.CompareAndSwap(nil, &err)
	}
}

// follow tells progress how a figure grows until it is stopped.
func follow(progress func(uint64), figure func() uint64) (stop func()) {
	const every = 100 * time.Millisecond
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		var told uint64
		for {
			select {
			case <-tick.C:
				now := figure()
				progress(now - told)
				told = now
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
