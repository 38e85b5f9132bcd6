package session

import (
	"context"
	"time"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/wire"
)

const (
	// defaultHeld and maxHeldRecords are the records that one group_describe
	// lists.
	defaultHeld    = 100
	maxHeldRecords = 1000
	// heldBytes is what one of them takes in the answer at most, its names
	// written with every byte escaped.
	heldBytes = 512 + 6*(maxConsumer+maxShownPrincipal)
	// maxShownPrincipal is how much of a token's subject is shown, in bytes.
	maxShownPrincipal = 255
)

// groupDescribe says where a group stands and, if asked, which records it holds
// and who has them.
func (s *control) groupDescribe(ctx context.Context, m *wire.GroupDescribe) (wire.Message, error) {
	o := queue.DescribeOptions{Held: m.Held, From: m.HeldFrom, Limit: defaultHeld}
	if m.HeldLimit > 0 {
		o.Limit = int(min(m.HeldLimit, maxHeldRecords))
	}
	o.Limit = max(1, min(o.Limit, s.c.srv.cfg.MaxFrameBytes/heldBytes))
	var info queue.Info
	err := s.groupCall(ctx, &m.GroupRef, mayConsume, func(ctx context.Context, r queue.Ref) (err error) {
		info, err = s.c.srv.broker.Groups().Describe(ctx, r, o)
		return err
	})
	if err != nil {
		return nil, retried(err)
	}
	return groupInfo(m.RequestID, &info), nil
}

func groupInfo(requestID uint64, info *queue.Info) *wire.GroupInfo {
	m := &wire.GroupInfo{
		Committed: wire.Optional[uint64]{Value: info.Committed, Set: info.HasCommitted},
		Tail:      info.Tail, InFlight: info.InFlight, Owed: info.Owed, DeadLetters: info.DeadLetters, RequestID: requestID,
		HighWater: wire.Some(info.HighWater), Trimmed: info.Trimmed, MaxAttempts: info.MaxAttempts,
		First: wire.Some(groupHeld(&info.First)), NextLapseMicros: optMicros(info.NextLapse),
	}
	for i := range info.Held {
		m.Held = append(m.Held, groupHeld(&info.Held[i]))
	}
	if n := len(info.Held); info.More && n > 0 {
		m.HeldNext = wire.Some(info.Held[n-1].Offset + 1)
	}
	return m
}

func groupHeld(h *queue.HeldRecord) wire.GroupHeld {
	m := wire.GroupHeld{
		Offset: h.Offset, State: heldState(h.State), Attempts: h.Attempts, Connection: h.Holder.Connection,
		SinceMicros: optMicros(h.Since), UntilMicros: optMicros(h.Until), Reserved: h.Reserved, Redriven: h.Redriven,
	}
	if h.Holder.Consumer != "" {
		m.Consumer = wire.Some(h.Holder.Consumer)
	}
	if p := h.Holder.Principal; p != "" {
		m.Principal = wire.Some(p[:min(len(p), maxShownPrincipal)])
	}
	return m
}

func heldState(s tracker.State) string {
	switch s {
	case tracker.Claimed:
		return wire.GroupClaimed
	case tracker.Delayed:
		return wire.GroupDelayed
	case tracker.Owed:
		return wire.GroupOwed
	case tracker.Burying:
		return wire.GroupDeadLettering
	case tracker.NotHandedOut:
		return wire.GroupNotHandedOut
	default:
		return wire.GroupAtTail
	}
}

// optMicros is a time as Unix microseconds; the zero time is none.
func optMicros(t time.Time) wire.Optional[uint64] {
	if t.IsZero() {
		return wire.Optional[uint64]{}
	}
	return wire.Some(uint64(max(t.UnixMicro(), 0)))
}
