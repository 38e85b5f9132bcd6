package controlplane

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// The periods of loops that no setting names (control plane 1.2).
const (
	purgePeriod = time.Hour
	countPeriod = 5 * time.Second
	seedRetry   = 2 * time.Second
	loopTimeout = 30 * time.Second // of one turn
)

// every runs a turn now and then a period after each, until ctx ends. A turn
// that overran is not made up for.
func every(ctx context.Context, period time.Duration, turn func(ctx context.Context)) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, loopTimeout)
		turn(bounded)
		cancel()
		timer.Reset(period)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// purge forgets refresh tokens that expired by the clock that judges them. The
// store's may be ahead of it for good, since it never goes back.
func (s *Server) purge(ctx context.Context) {
	_, err := s.o.Store.PurgeRefreshTokens(ctx, uint64(max(s.o.Clock().Unix(), 0)))
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Warn("expired refresh tokens could not be purged; it is tried again in an hour", "error", err)
	}
}

// A counter counts what there is, and again only after a change.
type counter struct{ streams, caches counted }

type counted struct {
	known bool
	seq   uint64
}

// count sets the gauges of the catalogue.
func (s *Server) count(ctx context.Context, c *counter) {
	// The gauge of readiness is set by the check.
	_ = s.ready.check(ctx)
	st := s.o.Store
	recount(ctx, &c.streams, st.StreamChanges, st.StreamsSnapshot, s.metrics.streams.Set)
	recount(ctx, &c.caches, st.CacheChanges, st.CachesSnapshot, s.metrics.caches.Set)
	nodes, err := st.Nodes(ctx)
	if err != nil {
		return // the gauges keep what was known; readiness says why
	}
	type label struct{ lifecycle, region string }
	counts := map[label]int{}
	for _, n := range nodes {
		counts[label{string(n.Status.Lifecycle), n.Spec.Region}]++
	}
	s.metrics.nodes.Reset()
	for l, n := range counts {
		s.metrics.nodes.WithLabelValues(l.lifecycle, l.region).Set(float64(n))
	}
}

func recount[T any, C model.Sequenced](ctx context.Context, c *counted,
	changes func(context.Context, uint64) (model.Page[C], error),
	snapshot func(context.Context) (model.Snapshot[T], error), set func(float64),
) {
	if c.known {
		page, err := changes(ctx, c.seq)
		if verdict, _, _ := model.Judge(page, c.seq); err != nil || verdict == model.Nothing {
			return
		}
	}
	snap, err := snapshot(ctx)
	if err != nil {
		return
	}
	set(float64(len(snap.Items)))
	c.known, c.seq = true, snap.NextSeq
}

// seed stores the bridges of the settings if the store holds none. A store that
// cannot be written yet is tried again.
func (s *Server) seed(ctx context.Context) {
	for {
		err := s.seedOnce(ctx)
		if err == nil {
			return
		}
		s.o.Logger.Warn("the bridges between regions are not stored yet; it is tried again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(seedRetry):
		}
	}
}

func (s *Server) seedOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loopTimeout)
	defer cancel()
	there, err := s.o.Store.Bridges(ctx)
	if err != nil || len(there) > 0 {
		return err
	}
	for _, b := range s.o.RegionBridges {
		if err := s.o.Store.PutBridge(ctx, b); err != nil {
			return err
		}
	}
	s.planner.Wake()
	return nil
}
