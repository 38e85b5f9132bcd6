package queue

import (
	"context"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
)

// PollOptions ask for records.
type PollOptions struct {
	// MaxRecords and MaxBytes (of payload) bound the answer, and are bounded by
	// [MaxPollRecords] and [MaxPollBytes], which a MaxBytes of 0 means. One
	// record is given whatever its size, and one larger than MaxBytes alone.
	MaxRecords, MaxBytes int
	// Wait is how long to wait for the first record, bounded by Config.MaxWait.
	Wait time.Duration
	// Visibility is how long the claims stand, bounded by Config.MaxVisibility;
	// 0 means Config.Visibility.
	Visibility time.Duration
	// Holder is who asks. With Reclaim, on the first such poll of its
	// connection, the claims of its member's older connections are kept for it
	// (wire 12.2).
	Holder  tracker.Holder
	Reclaim bool
}

// A Record is one record handed out.
type Record struct {
	stream.Record
	// Attempts are its deliveries, this one included.
	Attempts uint32
	// SkippedBefore offsets directly below were settled without a delivery.
	SkippedBefore uint64

	claim tracker.Claim
	era   uint64
}

// Poll hands out records of a group, in the order of their offsets, claimed by
// o.Holder (broker 10.4). Where there is none it waits for one, and then answers
// none. When ctx ends nothing is claimed and the error is its cause.
//
// Errors: those of [Store.Ready] and of [stream.Shard.Read], those of the log
// where it must be written first, why the shard serves no longer.
func (s *Store) Poll(ctx context.Context, r Ref, o PollOptions) ([]Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	g, err := s.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	defer g.release()
	p := poll{group: g, o: o.bounded(&s.cfg)}
	defer p.leave()
	records, err := p.run(ctx)
	if p.capped {
		s.count.capped.Add(1)
	}
	return records, err
}

func (o PollOptions) bounded(c *Config) PollOptions {
	o.MaxRecords = min(o.MaxRecords, MaxPollRecords)
	if o.MaxBytes <= 0 || o.MaxBytes > MaxPollBytes {
		o.MaxBytes = MaxPollBytes
	}
	o.Wait = min(o.Wait, c.MaxWait)
	if o.Visibility <= 0 {
		o.Visibility = c.Visibility
	}
	o.Visibility = min(o.Visibility, c.MaxVisibility)
	return o
}

// A poll is one Poll under way.
type poll struct {
	group   *group
	o       PollOptions
	waiter  *waiter // nil until it waits
	expired chan struct{}
	stop    func() bool
	capped  bool
}

// run takes, and waits until there is something to take.
func (p *poll) run(ctx context.Context) ([]Record, error) {
	if p.o.MaxRecords <= 0 {
		return nil, nil
	}
	for {
		records, again, err := p.take(ctx)
		if err == nil && p.waiter != nil {
			p.waiter.owes = false
		}
		if len(records) > 0 || err != nil {
			return records, err
		}
		switch {
		case again:
		case p.o.Wait <= 0:
			return nil, nil
		case p.waiter == nil:
			p.wait() // and look once more, for what came before it was heard of
		default:
			if expired, err := p.park(ctx); expired || err != nil {
				return nil, err
			}
		}
	}
}

// wait begins to wait.
func (p *poll) wait() {
	p.waiter = p.group.waiters.join()
	expired := make(chan struct{})
	p.expired = expired
	p.stop = p.group.shard.store.clock.AfterFunc(p.o.Wait, func() { close(expired) })
}

// park waits until it is woken.
func (p *poll) park(ctx context.Context) (expired bool, err error) {
	select {
	case <-p.waiter.woken:
		p.group.waiters.again(p.waiter)
		return false, nil
	case <-p.expired:
		return true, nil
	case <-p.group.shard.gone:
		return false, p.group.shard.cause()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// leave ends the waiting.
func (p *poll) leave() {
	if p.waiter != nil {
		p.stop()
		p.group.waiters.leave(p.waiter)
	}
}

// take claims what there is and reads it. again says that the group was moved
// meanwhile, or that what was claimed were no records.
func (p *poll) take(ctx context.Context) (records []Record, again bool, err error) {
	g := p.group
	claims, era, err := p.claim(ctx)
	if err != nil || len(claims) == 0 {
		return nil, false, err
	}
	got := fetch(ctx, g.shard.src, claims, p.o.MaxBytes)
	h := handOut{group: g, era: era, visibility: p.o.Visibility, fetched: got}
	records, err = h.run(ctx)
	return records, len(records) == 0 && err == nil, err
}

// claim takes claims from the tracker.
func (p *poll) claim(ctx context.Context) (claims []tracker.Claim, era uint64, err error) {
	g := p.group
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	oldest, tail := g.shard.src.Bounds()
	if err := g.enter(ctx); err != nil {
		return nil, 0, err
	}
	g.trim(oldest)
	g.lapse()
	if p.o.Reclaim {
		p.o.Reclaim = false
		g.tracker.Reclaim(p.o.Holder)
	}
	now := g.shard.store.now()
	claims, bury, capped := g.tracker.Take(nil, nil, p.o.Holder, p.o.MaxRecords, now, now+int64(p.o.Visibility), tail)
	g.buryAll(bury)
	p.capped = p.capped || capped && len(claims) == 0
	g.mark()
	if len(claims) > 0 {
		g.wake(tail)
	}
	era = g.era
	g.leave(teller{})
	return claims, era, nil
}

// trim takes in that retention has taken what lies below base.
func (g *group) trim(base uint64) {
	if base <= g.trimmed {
		return
	}
	g.trimmed = base
	trimmed, redriven := g.tracker.TrimBefore(base)
	for _, offset := range redriven {
		g.finishRedriven(offset, nil)
	}
	if trimmed > 0 {
		g.skips.add(trimmed, base)
		g.lost += trimmed
		g.shard.store.count.trimmed.Add(trimmed)
	}
	g.mark()
}
