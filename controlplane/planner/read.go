package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// A reading is what a decision rests on.
type reading struct {
	token   uint64 // read before all else
	input   placement.Input
	reports []model.ReplicaReport // of any age
}

// read reads everything, of what is large only what has changed. The token comes
// first, so that whatever is written meanwhile fences what is decided; the clock
// comes last, so that no report looks younger than it is.
func (p *Planner) read(ctx context.Context) (*reading, error) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.kept.upTo(p.o.Clock(), p.doubts.Swap(false))
	s, k, r := p.o.Store, p.kept, &reading{}
	in := &r.input
	in.Policy = p.o.Policy
	steps := []struct {
		what string
		read func() error
	}{
		{"the placement token", func() (err error) { r.token, err = s.PlacementToken(ctx); return }},
		{"the pause", func() (err error) { in.Paused, err = s.MovesPaused(ctx); return }},
		{"the nodes", func() (err error) { in.Nodes, err = s.Nodes(ctx); return }},
		{"the streams", func() (err error) { in.Streams, err = k.streams.read(ctx); return }},
		{"the caches", func() (err error) { in.Caches, err = k.caches.read(ctx); return }},
		{"the bridges", func() (err error) { in.Bridges, err = s.Bridges(ctx); return }},
		{"the assignments", func() (err error) { in.Assignments, err = k.assignments.read(ctx); return }},
		{"the reports", func() (err error) { r.reports, err = s.Reports(ctx); return }},
		{"the clock", func() (err error) { in.NowMillis, err = s.NowMillis(ctx); return }},
	}
	for _, step := range steps {
		if err := step.read(); err != nil {
			return nil, fmt.Errorf("read %s: %w", step.what, err)
		}
	}
	in.Reports = p.fresh(r.reports, in.NowMillis)
	return r, nil
}

// fresh are the reports that count (control plane 6.5).
func (p *Planner) fresh(reports []model.ReplicaReport, now uint64) []model.ReplicaReport {
	ttl := uint64(p.o.reportTTL().Milliseconds())
	return slices.DeleteFunc(slices.Clone(reports), func(r model.ReplicaReport) bool {
		return now > r.ReportedAtMillis && now-r.ReportedAtMillis > ttl
	})
}
