package planner

import (
	"context"
	"math"

	"github.com/felixlog/felix/controlplane/model"
)

// watch wakes the planner when a feed grows that placement depends on, whoever
// wrote it.
func (p *Planner) watch(ctx context.Context) {
	s := p.o.Store
	heads := [3]uint64{math.MaxInt64, math.MaxInt64, math.MaxInt64} // behind every entry
	for first := true; sleep(ctx, p.o.Watch); first = false {
		grown := false
		streams, err := s.StreamChanges(ctx, heads[0])
		grown = head(&heads[0], streams, err) || grown
		caches, err := s.CacheChanges(ctx, heads[1])
		grown = head(&heads[1], caches, err) || grown
		nodes, err := s.NodeChanges(ctx, heads[2])
		grown = head(&heads[2], nodes, err) || grown
		if grown && !first {
			p.Wake()
		}
	}
}

// head moves on to the end of a feed and says whether that is another one than
// before. What cannot be read now is seen at the next look.
func head[T model.Sequenced](at *uint64, page model.Page[T], err error) bool {
	if err != nil || *at == page.NextSeq {
		return false
	}
	*at = page.NextSeq
	return true
}
