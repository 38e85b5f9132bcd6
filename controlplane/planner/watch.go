package planner

import (
	"context"
	"math"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// watch wakes the planner when a feed grows that placement depends on, whoever
// wrote it.
func (p *Planner) watch(ctx context.Context) {
	h := behindAll
	h.grown(ctx, p.o.Store)
	for sleep(ctx, p.o.Watch) {
		if h.grown(ctx, p.o.Store) {
			p.Wake()
		}
	}
}

// heads are the ends of the feeds, as last seen.
type heads struct{ streams, caches, nodes uint64 }

// behindAll is behind every entry, so that none is read to find the ends.
var behindAll = heads{math.MaxInt64, math.MaxInt64, math.MaxInt64}

// grown moves on to the ends of the feeds and says whether any is another one
// than before. What cannot be read now is seen at the next look.
func (h *heads) grown(ctx context.Context, s store.Store) bool {
	streams, err := s.StreamChanges(ctx, h.streams)
	grown := moved(&h.streams, streams, err)
	caches, err := s.CacheChanges(ctx, h.caches)
	grown = moved(&h.caches, caches, err) || grown
	nodes, err := s.NodeChanges(ctx, h.nodes)
	return moved(&h.nodes, nodes, err) || grown
}

func moved[T model.Sequenced](at *uint64, page model.Page[T], err error) bool {
	if err != nil || *at == page.NextSeq {
		return false
	}
	*at = page.NextSeq
	return true
}
