package queue

import (
	"context"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/kvlog"
)

// Delete removes a group: its position, dead letters and claims (wire 12.2). The
// next poll begins it anew. existed is false when there was nothing. Requests to
// the group wait meanwhile. After an error the group stands where it stood, and
// some of its dead letters may be gone. Errors as [Store.DeadLetter].
func (s *Store) Delete(ctx context.Context, r Ref) (existed bool, err error) {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return false, err
	}
	defer g.release()
	err = g.exclusively(ctx, func() (err error) {
		existed, err = g.remove()
		return err
	})
	if err != nil {
		return false, err
	}
	return existed, nil
}

// remove is Delete by who has the group for itself. The position goes last:
// until then a repetition finds that the group exists.
func (g *group) remove() (existed bool, err error) {
	writes, err := g.dropCounts(func(uint64) bool { return false })
	if err != nil {
		return false, err
	}
	for _, offset := range append(g.letters.redrivenOffsets(), g.letters.dead...) {
		writes = append(writes, &write{
			letter: true,
			Write:  kvlog.Write{Op: kvlog.Delete, Key: recordKey(g.name, offset)},
			ended:  func(error) { g.letters.remove(offset) },
		})
	}
	existed = g.cursor.exists || len(writes) > 0
	if err := g.commit(writes); err != nil {
		return false, err
	}
	return existed, g.commit([]*write{{
		Write: kvlog.Write{Op: kvlog.Delete, Key: []byte(g.name)},
		ended: func(error) { g.forget() },
	}})
}

// forget makes the group a new one. What was handed out before is not settled
// by whoever still holds it.
func (g *group) forget() {
	cfg := &g.shard.store.cfg
	_, tail := g.shard.src.Bounds()
	g.era++
	g.cursor.durable, g.cursor.exists = mark{}, false
	g.letters.init()
	g.skips, g.trimmed, g.graves = skips{}, 0, nil
	g.tracker = tracker.New(
		tracker.Options{MaxInFlight: cfg.MaxInFlight, MaxAttempts: cfg.MaxAttempts},
		tracker.Start{Tail: tail, Rebuilt: true},
	)
	// As if the group had come from the tail: claims of before are stale.
	g.tracker.Seek(0)
}
