package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/felixlog/felix/client"
)

// Latency measures one message at a time: how long until its
// acknowledgement, and how long until a subscriber has it.
type Latency struct {
	Stream       string
	Total        uint64 // messages measured
	Warmup       uint64 // messages before that
	PayloadBytes int
}

// LatencyResult is what Latency measured.
type LatencyResult struct {
	Bench    string `json:"bench"`
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Lost counts messages that were acknowledged and did not arrive.
	Lost    uint64  `json:"lost"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"messages_per_second"`
	// AckUS runs from publishing to the acknowledgement, DeliveryUS to the
	// arrival at the subscriber.
	AckUS        Quantiles `json:"ack_latency_us"`
	DeliveryUS   Quantiles `json:"delivery_latency_us"`
	Warmup       uint64    `json:"warmup"`
	PayloadBytes int       `json:"payload_bytes"`
	Loop         string    `json:"loop"`
}

func (b Latency) check() error {
	return check(
		bound{"total", b.Total, 1, maxMessages},
		bound{"warmup", b.Warmup, 0, maxMessages},
		bound{"payload-bytes", uint64(b.PayloadBytes), messageHead, maxPayload},
	)
}

// Run measures, with a client for the publisher and one for the subscriber.
// progress is told of messages that have arrived.
func (b Latency) Run(ctx context.Context, dial Dialer, progress func(n uint64)) (LatencyResult, error) {
	if err := b.check(); err != nil {
		return LatencyResult{}, err
	}
	publisher, err := dial(ctx)
	if err != nil {
		return LatencyResult{}, err
	}
	reader, err := dial(ctx)
	if err != nil {
		return LatencyResult{}, err
	}
	defer reader.Close()
	clock := newStopwatch()
	run := rand.Uint64()
	readers, err := gather(ctx, []*client.Client{reader}, b.Stream, 1, run, b.Warmup, clock)
	if err != nil {
		return LatencyResult{}, err
	}
	defer readers.disperse()

	acks := newRecorder()
	payload := noise(b.PayloadBytes)
	member := readers.members[0]
	var begin, end time.Duration
	var lost uint64
	for sequence := range b.Warmup + b.Total {
		if sequence == b.Warmup {
			begin = clock.now()
		}
		sent := clock.now()
		message{run: run, sequence: sequence, sent: sent}.put(payload)
		if _, err := publisher.Publish(ctx, b.Stream, payload); err != nil {
			return LatencyResult{}, err
		}
		acked := clock.now()
		if sequence >= b.Warmup {
			acks.record(acked - sent)
		}
		arrived := func() bool { return member.warm.Load()+member.seen.Load()+lost > sequence }
		if err := readers.wait(ctx, arrived); err != nil {
			return LatencyResult{}, err
		}
		if !arrived() {
			lost++
		}
		end = clock.now()
		if sequence >= b.Warmup {
			progress(1)
		}
	}
	readers.disperse()
	seen := member.seen.Load()
	return LatencyResult{
		Bench: "latency", Stream: b.Stream, Messages: b.Total, Bytes: member.bytes.Load(),
		Lost: b.Total - min(seen, b.Total), Seconds: (end - begin).Seconds(), Rate: perSecond(b.Total, end-begin),
		AckUS: acks.quantiles(), DeliveryUS: member.times.quantiles(),
		Warmup: b.Warmup, PayloadBytes: b.PayloadBytes, Loop: loopClosed,
	}, nil
}
