package planner

import (
	"context"
	"time"
)

// sweeps looks for brokers that fell silent, a full period after the look before
// has ended.
func (p *Planner) sweeps(ctx context.Context) {
	var s sweeper
	for sleep(ctx, p.o.Sweep) {
		s.sweep(ctx, p)
	}
}

// A sweeper judges nobody before it has watched for a whole lease: while nobody
// could reach the control plane, nobody could renew one. It begins anew where
// the store's clock leaps ahead, as that of a database does that fails over to
// another machine: brokers count their leases on clocks of their own.
type sweeper struct {
	since time.Time // of the watch, without a break
	asked time.Time // when the store was last asked for its clock, and answered
	told  uint64    // what it said
}

func (s *sweeper) sweep(ctx context.Context, p *Planner) {
	may, err := p.o.Store.MayPlan(ctx)
	if err != nil || !may {
		return
	}
	asked := p.o.Clock()
	now, err := p.o.Store.NowMillis(ctx)
	if err != nil {
		return
	}
	clock := p.o.Clock()
	passed := clock.Sub(s.asked)
	away := s.asked.IsZero() || passed > max(p.o.Expiry/2, 2*p.o.Sweep)
	if away || now > s.told+uint64((passed+p.o.Margin/2).Milliseconds()) {
		s.since = clock
	}
	s.asked, s.told = asked, now
	silence := uint64((p.o.Expiry + p.o.Margin).Milliseconds())
	if clock.Sub(s.since) < p.o.Expiry || now <= silence {
		return
	}
	expired, err := p.o.Store.ExpireStale(ctx, now-silence)
	if err != nil {
		if ctx.Err() == nil {
			p.o.Observer.NodeExpiryFailure()
			p.o.Logger.ErrorContext(ctx, "the sweep for silent brokers failed", "error", err)
		}
		return
	}
	if len(expired) == 0 {
		return
	}
	p.o.Observer.NodeExpiry(len(expired))
	for _, e := range expired {
		p.o.Observer.NodeTransition(e.From, e.Node.Status.Lifecycle)
		p.o.Logger.WarnContext(ctx, "a broker missed its heartbeats and is down", "node", e.Node.NodeID,
			"last_heartbeat_at_millis", e.Node.Status.LastHeartbeatAtMillis)
	}
	p.Wake()
}
