package stream

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/broker/placed"
)

// Assign has a shard of a placed stream served from now on; the log of a
// durable one is opened in the background. An order that is not newer than the
// one held changes nothing. Errors: [placed.ErrNotPlaced], [ErrRemoved],
// [*NoShardError].
func (s *Stream) Assign(shard uint32, generation uint64) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	seat, err := s.seat(shard)
	if err != nil || !seat.Assign(generation) {
		return err
	}
	if sh := s.serve(shard); sh != nil {
		s.openLogs([]*Shard{sh})
	}
	return nil
}

// Unassign has a shard of a placed stream served no longer: subscriptions and
// polls end with a [*placed.NotServedError], requests are refused with one, and
// what was accepted is finished before the log is closed, in the background. An
// order that is not newer than the one held changes nothing. Errors as
// [Stream.Assign].
func (s *Stream) Unassign(shard uint32, generation uint64, reason string) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	seat, err := s.seat(shard)
	if err == nil && seat.Unassign(generation, reason) {
		s.yield(shard)
	}
	return err
}

// Release is Unassign whatever the generation, which it forgets. Errors as
// [Stream.Assign].
func (s *Stream) Release(shard uint32, reason string) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	seat, err := s.seat(shard)
	if err == nil && seat.Release(reason) {
		s.yield(shard)
	}
	return err
}

// NoShardError refuses an order about a shard the stream does not have.
type NoShardError struct {
	Stream        Name
	Shard, Shards uint32
}

func (e *NoShardError) Error() string {
	return fmt.Sprintf("stream %s has %d shards: there is no shard %d", e.Stream, e.Shards, e.Shard)
}

// seat finds the orders about a shard; placing is held.
func (s *Stream) seat(shard uint32) (*placed.Seat, error) {
	switch {
	case s.seats == nil:
		return nil, placed.ErrNotPlaced
	case !s.active.Load():
		return nil, ErrRemoved
	case shard >= s.opts.Shards:
		return nil, &NoShardError{Stream: s.name, Shard: shard, Shards: s.opts.Shards}
	}
	return &s.seats[shard], nil
}

// serve puts a shard in place that serves, nil where that cannot be; placing is
// held.
func (s *Stream) serve(i uint32) *Shard {
	if s.opts.Copies > 1 {
		why := placed.NotReplicated(s.placedName(i), s.opts.Copies, s.generation(i))
		s.shards[i].Store(s.hub.vacantShard(s, i, why))
		return nil
	}
	sh := s.hub.newShard(s, i)
	s.shards[i].Store(sh)
	return sh
}

// openLogs begins to open the logs of new shards.
func (s *Stream) openLogs(shards []*Shard) {
	if s.opts.Durable && len(shards) > 0 {
		s.hub.opener.start(shards)
	}
}

// yield ends the shard that serves and leaves its place vacant; placing is
// held.
func (s *Stream) yield(i uint32) {
	old := s.shards[i].Load()
	if !old.vacant {
		cause := s.notServed(i, placed.Moving)
		old.finish(cause)
		if s.opts.Durable {
			s.hub.opener.stop([]*Shard{old}, cause)
		}
	}
	s.vacate(i, placed.NotAssigned, old.gone)
}

// vacate puts a shard in place that refuses everything; the one before it has
// let go of its logs when leaving is closed. placing is held.
func (s *Stream) vacate(i uint32, reason placed.Reason, leaving chan struct{}) {
	sh := s.hub.vacantShard(s, i, s.notServed(i, reason))
	sh.before = leaving
	s.shards[i].Store(sh)
}

func (s *Stream) notServed(i uint32, reason placed.Reason) *placed.NotServedError {
	e := &placed.NotServedError{Shard: s.placedName(i), Reason: reason, Generation: s.generation(i)}
	if s.seats != nil {
		e.Detail = s.seats[i].Reason()
	}
	return e
}

func (s *Stream) generation(i uint32) uint64 {
	if s.seats == nil {
		return 0
	}
	return s.seats[i].Generation()
}

func (s *Stream) placedName(i uint32) placed.Shard {
	return placed.Shard{Kind: "stream", Tenant: s.name.Tenant, Namespace: s.name.Namespace, Name: s.name.Name, Index: i}
}

// ShardStatus says how a shard stands with this broker (control plane 6.6).
func (s *Stream) ShardStatus(i uint32) placed.Status {
	s.placing.Lock()
	sh, st := s.shards[i].Load(), placed.Status{Generation: s.generation(i)}
	if s.seats != nil {
		st.Reason = s.seats[i].Reason()
	}
	s.placing.Unlock()
	if sh.vacant {
		return sh.vacancy(st)
	}
	now := sh.Status()
	if now.Err != nil {
		st.Reason = now.Err.Error()
	}
	switch now.State {
	case InMemory, Serving:
		st.State = placed.Active
	case BeingOpened:
		st.State = placed.Opening
	case Refused, ReadOnly:
		st.State = placed.Failed
	case Ended:
		st.State = placed.Closed
	}
	return st
}

// vacancy completes the status of a shard that is not served.
func (sh *Shard) vacancy(st placed.Status) placed.Status {
	st.State = placed.Unassigned
	why, notServed := sh.Err().(*placed.NotServedError)
	switch {
	case !notServed:
		st.State, st.Reason = placed.Closed, sh.Err().Error()
	case why.Reason == placed.Unreplicated:
		st.State, st.Reason = placed.Failed, why.Detail
	case sh.before != nil:
		select {
		case <-sh.before:
		default:
			st.State = placed.Draining
		}
	}
	return st
}

// LetGo waits until the shards of a name that have ended, removed streams'
// included, have let go of their logs. It returns the cause of ctx if that ends
// first.
func (h *Hub) LetGo(ctx context.Context, name Name) error { return h.opener.letGo(ctx, name) }
