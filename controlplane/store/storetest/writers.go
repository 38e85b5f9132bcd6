package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// write changes streams of its own, and namespaces that all writers share.
func (r *run) write(writer int) error {
	rng := rand.New(rand.NewPCG(r.o.Seed, uint64(writer)))
	for n := uint64(0); slowest(r.audited) < uint64(r.o.Changes); n++ {
		for r.head.Load() > slowest(r.cursors)+ahead {
			if err := r.pause(rng, time.Millisecond); err != nil {
				return err
			}
		}
		if r.ops.Add(1)%100 == 0 {
			if err := r.tick(); err != nil {
				return err
			}
		}
		s := r.stores[rng.IntN(len(r.stores))]
		if err := r.writeOne(rng, s, writer, n); err != nil {
			var missing *store.NotFoundError
			var conflict *store.ConflictError
			if !errors.As(err, &missing) && !errors.As(err, &conflict) {
				return err
			}
		}
	}
	return nil
}

// tick wishes for a snapshot, and looks how long the feed is.
func (r *run) tick() error {
	select {
	case r.snapshots <- struct{}{}:
	default:
	}
	p, err := r.stores[0].StreamChanges(r.ctx, 1<<62)
	r.head.Store(p.NextSeq)
	return err
}

func (r *run) writeOne(rng *rand.Rand, s store.Store, writer int, n uint64) error {
	k := model.NamespaceKey{TenantID: feedsTenant, Namespace: fmt.Sprintf("ns%d", rng.IntN(4))}
	key := model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: fmt.Sprintf("w%d-s%d", writer, rng.IntN(4))}
	switch dice := rng.IntN(100); {
	case dice < 1:
		return s.DeleteNamespace(r.ctx, k)
	case dice < 5:
		return s.CreateNamespace(r.ctx, model.Namespace{TenantID: k.TenantID, Namespace: k.Namespace, DisplayName: fmt.Sprint(writer, n)})
	case dice < 40:
		x := newStream(k, key.Stream, 1)
		x.UID = fmt.Sprintf("%d-%d", writer, n)
		return s.CreateStream(r.ctx, x)
	case dice < 80:
		_, err := s.PatchStream(r.ctx, key, model.StreamPatch{Retention: &model.Retention{MaxAgeSeconds: &n}})
		return err
	default:
		return s.DeleteStream(r.ctx, key)
	}
}
