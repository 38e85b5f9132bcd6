package felix

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/stats"
	"github.com/felixlog/felix/client"
)

const (
	// stampBytes is what a record begins with: its number and the time it
	// was due.
	stampBytes = 16
	// settleFor is how long a run waits for what was published to arrive.
	settleFor = 10 * time.Second
	// settleEvery is how often it looks.
	settleEvery = 20 * time.Millisecond
)

// A StalledPeerSpec is a run of one publisher at a fixed rate before
// subscribers on connections of their own, the last of which may be frozen.
type StalledPeerSpec struct {
	Target      Target         `json:"target"`
	Phases      measure.Phases `json:"phases"`
	Subscribers int            `json:"subscribers"`
	// Every is the time from one batch to the next.
	Every       time.Duration `json:"every_ns"`
	Batch       int           `json:"batch"`
	RecordBytes int           `json:"record_bytes"`
	// Frozen says that the last subscriber takes nothing until the run is
	// over. Window, in bytes, and Queue, in batches, are what its connection
	// and the broker hold for it.
	Frozen bool   `json:"frozen"`
	Window int    `json:"window_bytes"`
	Queue  uint32 `json:"queue_batches"`
}

// StalledPeer times deliveries to all subscribers but the last, from the
// moment a record was due to be sent, so that a publisher that is held up
// shortens no latency. The last one is never timed, so that runs with and
// without a frozen subscriber time the same connections. The run fails when
// a subscriber that is awake misses a record, and when the frozen one, let go
// in the end, cannot account for every record as received or as a gap.
func StalledPeer(ctx context.Context, spec StalledPeerSpec) (measure.Result, error) {
	if spec.RecordBytes < stampBytes {
		return measure.Result{}, fmt.Errorf("records of %d bytes, at least %d are needed", spec.RecordBytes, stampBytes)
	}
	pub, err := spec.Target.dial(ctx)
	if err != nil {
		return measure.Result{}, err
	}
	defer pub.Close()
	subs, closeSubs, err := subscribePeers(ctx, spec)
	if err != nil {
		return measure.Result{}, err
	}
	defer closeSubs()

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	accounted := measure.NewTally(spec.Subscribers)
	base, thaw := time.Now(), make(chan struct{})
	readers, reading := errgroup.WithContext(ctx)
	peers := make([]*peer, spec.Subscribers)
	for i, sub := range subs {
		p := &peer{sub: sub, base: base, phases: spec.Phases, lat: stats.NewLatency()}
		peers[i] = p
		if spec.Frozen && i == spec.Subscribers-1 {
			p.thaw = thaw
		}
		readers.Go(func() error {
			err := p.read(reading, func(n uint64) { accounted.Add(i, n) })
			if err != nil {
				err = fmt.Errorf("subscriber %d: %w", i, err)
				fail(err)
			}
			return err
		})
	}
	out := &pacer{p: pub.Publisher(frames.Stream), base: base, fail: fail, payloads: payloadsOf(spec.Batch, spec.RecordBytes), late: stats.NewLatency()}
	err = out.run(ctx, spec)
	if err == nil {
		err = settle(ctx, out, accounted, spec.Frozen, thaw)
	}
	fail(errDone)
	if werr := readers.Wait(); werr != nil {
		err = werr
	}
	if err != nil {
		return measure.Result{}, err
	}
	return peersResult(spec, peers, out)
}

// subscribePeers opens the subscriptions, the last with the bounds of a
// frozen one where there is one.
func subscribePeers(ctx context.Context, spec StalledPeerSpec) ([]*client.Subscription, func(), error) {
	if !spec.Frozen {
		return subscribe(ctx, spec.Target, spec.Subscribers, spec.Subscribers)
	}
	subs, closeAwake, err := subscribe(ctx, spec.Target, spec.Subscribers-1, spec.Subscribers-1)
	if err != nil {
		return nil, nil, err
	}
	c, err := spec.Target.dial(ctx, client.WithWindows(client.Windows{EventConn: spec.Window, EventStream: spec.Window}))
	if err != nil {
		closeAwake()
		return nil, nil, err
	}
	closeAll := func() {
		_ = c.Close() // the run is over; its subscription ends with it
		closeAwake()
	}
	sub, err := c.Subscribe(ctx, frames.Stream, client.QueueCapacity(spec.Queue))
	if err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("subscribe: %w", err)
	}
	return append(subs, sub), closeAll, nil
}

// settle waits until all that was published is accounted for everywhere. It
// lets the frozen subscriber go only when the others have everything. What
// was dropped shows with the next delivery, so more is published until it does.
func settle(ctx context.Context, out *pacer, accounted measure.Tally, frozen bool, thaw chan<- struct{}) error {
	wait := func(who measure.Tally, between func() error) error {
		for end := time.Now().Add(settleFor); who.Min() < out.published; {
			if time.Now().After(end) {
				return fmt.Errorf("%d records published, %d accounted for at the slowest subscriber", out.published, who.Min())
			}
			if err := between(); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(settleEvery):
			}
		}
		return nil
	}
	idle := func() error { return nil }
	if frozen {
		last := len(accounted) - 1
		if err := wait(accounted[:last], idle); err != nil {
			return err
		}
		close(thaw)
		if err := wait(accounted[last:], func() error { return out.send(ctx, time.Now()) }); err != nil {
			return err
		}
	}
	return wait(accounted, idle)
}

func peersResult(spec StalledPeerSpec, peers []*peer, out *pacer) (measure.Result, error) {
	timed, last := peers[:len(peers)-1], peers[len(peers)-1]
	total, arrived := stats.NewLatency(), time.Duration(0)
	for _, p := range timed {
		total.Merge(p.lat)
		arrived = max(arrived, p.arrived)
	}
	if spec.Frozen && last.gap == 0 {
		return measure.Result{}, errors.New("nothing was dropped for the frozen subscriber: a longer run is needed to say anything")
	}
	n := uint64(total.Count())
	r := measure.Result{
		Records: n, Bytes: n * uint64(spec.RecordBytes), Elapsed: arrived - spec.Phases.Warmup,
		P50: total.Quantile(.5), P99: total.Quantile(.99),
	}
	r.Note("client", "1 publisher, %d records every %v, %d subscribers timed", spec.Batch, spec.Every, len(timed))
	r.Note("pacing", "batches handed over after they were due: p50 %v, p99 %v", out.late.Quantile(.5), out.late.Quantile(.99))
	if spec.Frozen {
		r.Note("frozen", "of %d records %d received and %d reported as a gap, the first after record %d",
			out.published, last.next-last.gap, last.gap, last.firstGap)
	}
	return r, nil
}

// errOrder says that a subscriber got another record than the one it was owed.
var errOrder = errors.New("records out of order")

// A peer is one subscriber and what it saw.
type peer struct {
	sub    *client.Subscription
	thaw   <-chan struct{} // nil for one that is awake
	base   time.Time
	phases measure.Phases

	next     uint64 // received and reported as lost: the number that comes next
	gap      uint64
	firstGap uint64
	lat      *stats.Latency
	arrived  time.Duration // of the last record timed, since base
}

// read takes records until ctx ends and reports how many it accounted for.
func (p *peer) read(ctx context.Context, account func(uint64)) error {
	if p.thaw != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-p.thaw:
		}
	}
	for {
		b, err := p.sub.NextBatch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		before := p.next
		if err := p.take(b, time.Since(p.base)); err != nil {
			return err
		}
		account(p.next - before)
	}
}

// take holds a batch against the numbers in its records.
func (p *peer) take(b *client.Batch, now time.Duration) error {
	if b.Gap > 0 {
		if p.thaw == nil {
			return fmt.Errorf("%d records lost after record %d", b.Gap, p.next)
		}
		if p.gap == 0 {
			p.firstGap = p.next
		}
		p.gap += b.Gap
		p.next += b.Gap
	}
	begin := p.phases.Warmup
	end := begin + p.phases.Measure
	for ev := range b.Events() {
		if len(ev.Payload) < stampBytes {
			return fmt.Errorf("%w: a record of %d bytes", errOrder, len(ev.Payload))
		}
		if got := binary.BigEndian.Uint64(ev.Payload); got != p.next {
			return fmt.Errorf("%w: record %d where %d was due", errOrder, got, p.next)
		}
		p.next++
		if due := time.Duration(binary.BigEndian.Uint64(ev.Payload[8:])); due >= begin && due < end {
			p.lat.Record(now - due)
			p.arrived = now
		}
	}
	return nil
}

// A pacer publishes numbered batches at times fixed in advance.
type pacer struct {
	p         *client.Publisher
	base      time.Time
	fail      context.CancelCauseFunc
	payloads  [][]byte
	published uint64 // records
	late      *stats.Latency
}

// run publishes through both phases. A batch that is late is sent at once and
// keeps its time: the schedule never moves.
func (o *pacer) run(ctx context.Context, spec StalledPeerSpec) error {
	end := spec.Phases.Warmup + spec.Phases.Measure
	for due := spec.Every; due < end; due += spec.Every {
		for rest := due - time.Since(o.base); rest > 0; rest = due - time.Since(o.base) {
			sleep(rest)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.late.Record(time.Since(o.base) - due)
		if err := o.send(ctx, o.base.Add(due)); err != nil {
			return err
		}
	}
	return nil
}

// send publishes one batch that was due at that time.
func (o *pacer) send(ctx context.Context, due time.Time) error {
	for i, b := range o.payloads {
		binary.BigEndian.PutUint64(b, o.published+uint64(i))
		binary.BigEndian.PutUint64(b[8:], uint64(due.Sub(o.base)))
	}
	o.published += uint64(len(o.payloads))
	err := o.p.SendFunc(ctx, func(_ client.Ack, err error) {
		if err != nil {
			o.fail(fmt.Errorf("publish refused: %w", err))
		}
	}, o.payloads...)
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}
