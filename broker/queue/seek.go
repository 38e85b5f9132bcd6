package queue

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/kvlog"
)

// A PositionKind says how a position is meant.
type PositionKind uint8

const (
	// Earliest is the oldest record held, Latest the committed tail when the
	// seek lands, At the offset named.
	Earliest PositionKind = iota
	Latest
	At
)

// A Position is where a group is to stand.
type Position struct {
	Kind   PositionKind
	Offset uint64 // of At
}

// within turns p into an offset between oldest and tail.
func (p Position) within(oldest, tail uint64) (uint64, error) {
	switch {
	case p.Kind == Earliest:
		return oldest, nil
	case p.Kind == Latest:
		return tail, nil
	case p.Offset < oldest || p.Offset > tail:
		return 0, &tracker.InvalidError{
			Offset: p.Offset,
			Detail: fmt.Sprintf("outside of what the shard holds, which is %d to %d", oldest, tail),
		}
	}
	return p.Offset, nil
}

// Moved is the answer to a seek.
type Moved struct {
	// Offset is where the group stands.
	Offset uint64
	Moved  bool
}

// Seek moves a group, either way, or with ifNew creates it there unless it
// exists (wire 12.2). All claims are void then; dead letters stay listed, and
// what was redriven stays owed. Requests to the group wait meanwhile. After an
// error nothing has changed. Errors: *tracker.InvalidError for a position
// outside of what the shard holds, and as [Store.DeadLetter].
func (s *Store) Seek(ctx context.Context, r Ref, to Position, ifNew bool) (Moved, error) {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return Moved{}, err
	}
	defer g.release()
	var moved Moved // to be read after f has ended
	err = g.exclusively(ctx, func() (err error) {
		moved, err = g.seek(to, ifNew)
		return err
	})
	if err != nil {
		return Moved{}, err
	}
	return moved, nil
}

// seek is Seek by who has the group for itself.
func (g *group) seek(to Position, ifNew bool) (Moved, error) {
	if ifNew && g.cursor.exists {
		return Moved{Offset: g.tracker.Committed()}, nil
	}
	oldest, tail := g.shard.src.Bounds()
	offset, err := to.within(oldest, tail)
	if err != nil {
		return Moved{}, err
	}
	// The counts go first: behind a new position they would be those of other
	// deliveries. Without them what is in flight counts as handed out once.
	counts, err := g.dropCounts(g.letters.isRedriven)
	if err != nil {
		return Moved{}, err
	}
	if err := g.commit(counts); err != nil {
		return Moved{}, err
	}
	at := mark{has: true, committed: offset, handed: offset}
	err = g.commit([]*write{{
		Write: kvlog.Write{Key: []byte(g.name), Value: at.append(nil)},
		ended: func(error) {
			g.era++
			g.cursor.durable, g.cursor.exists = at, true
			g.tracker.Seek(offset)
			g.tracker.Marked()
			g.skips, g.trimmed, g.graves = skips{}, 0, nil
		},
	}})
	return Moved{Offset: offset, Moved: true}, err
}

// dropCounts are the removals of the group's counts, but for those of records
// that keep says.
func (g *group) dropCounts(keep func(offset uint64) bool) (drops []*write, err error) {
	err = g.eachRecord(g.shard.marks.Opened().Index, func(offset uint64, _ []byte) error {
		if !keep(offset) {
			drops = append(drops, &write{Write: kvlog.Write{Op: kvlog.Delete, Key: recordKey(g.name, offset)}})
		}
		return nil
	})
	return drops, g.shard.outcome(err)
}
