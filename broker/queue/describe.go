package queue

import (
	"context"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
)

// MaxHeld bounds the held records of one description.
const MaxHeld = 1000

// DescribeOptions ask for a description.
type DescribeOptions struct {
	// Held asks for the unsettled records from offset From on, at most Limit
	// of them; 0, or more than [MaxHeld], means that.
	Held  bool
	From  uint64
	Limit int
}

// Info describes a group (wire 12.2).
type Info struct {
	// Committed is the position on disk, where the group has one.
	HasCommitted bool
	Committed    uint64
	// Tail is the shard's committed tail.
	Tail uint64
	// InFlight are claimed, delayed or being given up, Owed wait for a poll.
	InFlight, Owed uint64
	// DeadLetters are listed.
	DeadLetters uint64
	// HighWater is the next offset that was never handed out.
	HighWater uint64
	// Trimmed records were taken by retention before the group had finished
	// them, since it is in memory.
	Trimmed     uint64
	MaxAttempts uint32
	// First is the offset that holds the position, and its state.
	First HeldRecord
	// NextLapse is when a claim or a delay ends next; zero when none does.
	NextLapse time.Time
	// Held are unsettled records, ascending; More says that there are others
	// behind them.
	Held []HeldRecord
	More bool
}

// A HeldRecord is one unsettled record. Times are zero where they do not apply.
type HeldRecord struct {
	Offset   uint64
	State    tracker.State
	Attempts uint32
	Holder   tracker.Holder
	// Since is when it was last handed out, Until the end of the claim, of the
	// delay or of the reservation.
	Since, Until       time.Time
	Reserved, Redriven bool
}

// Describe tells where a group stands, after what is due has lapsed and the dead
// letters under way are on disk. Errors as [Store.DeadLetter].
func (s *Store) Describe(ctx context.Context, r Ref, o DescribeOptions) (Info, error) {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return Info{}, err
	}
	defer g.release()
	if err := g.settle(ctx); err != nil {
		return Info{}, err
	}
	info := g.describe(o)
	g.leave(teller{})
	return info, nil
}

// describe is Describe with the group's lock held.
func (g *group) describe(o DescribeOptions) Info {
	_, tail := g.shard.src.Bounds()
	counts := g.tracker.Counts()
	info := Info{
		HasCommitted: g.cursor.durable.has,
		Committed:    g.cursor.durable.committed,
		Tail:         tail,
		InFlight:     uint64(counts.InFlight),
		Owed:         uint64(counts.Owed),
		DeadLetters:  uint64(len(g.letters.dead)),
		HighWater:    g.tracker.HighWater(),
		Trimmed:      g.lost,
		MaxAttempts:  g.shard.store.cfg.MaxAttempts,
	}
	shown := times{g.shard.store.clock.Shift()}
	first, _ := g.tracker.First(tail)
	info.First = shown.heldRecord(first)
	if at, ok := g.tracker.Next(); ok {
		info.NextLapse = shown.of(at)
	}
	if o.Held {
		if o.Limit <= 0 || o.Limit > MaxHeld {
			o.Limit = MaxHeld
		}
		var held []tracker.Held
		held, info.More = g.tracker.Held(nil, o.From, o.Limit)
		for _, h := range held {
			info.Held = append(info.Held, shown.heldRecord(h))
		}
	}
	return info
}

// times tells times of the tracker by the wall clock as it is now, which may have
// been set by shift since the start.
type times struct{ shift time.Duration }

func (t times) heldRecord(h tracker.Held) HeldRecord {
	return HeldRecord{
		Offset: h.Offset, State: h.State, Attempts: h.Attempts, Holder: h.Holder,
		Since: t.of(h.Since), Until: t.of(h.Until), Reserved: h.Reserved, Redriven: h.Redriven,
	}
}

// of is a time of the tracker; zero for none.
func (t times) of(at tracker.Time) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).Add(t.shift)
}
