package raft

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store"
)

// A reign is one leadership of this member.
type reign struct {
	end context.CancelFunc
	// ready is set when everything of earlier leaders is applied here, and with it
	// the times they stamped.
	ready atomic.Bool

	mu     sync.Mutex
	leased bool // the placement token was advanced for it
}

// watchLeadership begins and ends reigns.
func (s *Store) watchLeadership(r *hraft.Raft) {
	end := func() {
		if old := s.reign.Swap(nil); old != nil {
			old.end()
		}
	}
	defer end()
	for {
		select {
		case <-s.done:
			return
		case leads := <-r.LeaderCh():
			end()
			if leads {
				ctx, cancel := context.WithCancel(s.life)
				now := &reign{end: cancel}
				s.reign.Store(now)
				s.work.Go(func() { s.lead(ctx, r, now) })
			}
		}
	}
}

func (s *Store) lead(ctx context.Context, r *hraft.Raft, now *reign) {
	if err := await(ctx, r.Barrier(s.opts.WriteTimeout)); err != nil {
		return // it was short
	}
	now.ready.Store(true)
	s.led.Do(func() { close(s.ledOnce) })
	s.opts.Logger.Info("this member leads the control plane", "term", r.CurrentTerm())
	s.seat(ctx, r)
}

// seat makes voters of the members that do not vote yet, one after the other,
// when they have what the group has committed. It ends when all vote.
func (s *Store) seat(ctx context.Context, r *hraft.Raft) {
	for {
		waiting := s.unseated(r)
		if len(waiting) == 0 {
			return
		}
		for _, id := range waiting {
			var st standing
			committed := r.CommitIndex()
			if err := s.ask(ctx, id, standingRoute, &st); err != nil || st.Withheld || st.LastLogIndex+maxLag < committed {
				continue
			}
			if err := await(ctx, r.AddVoter(serverID(id), serverAddress(id), 0, s.opts.AttemptTimeout)); err != nil {
				s.opts.Logger.Warn("member not made a voter", "member", id, "error", err)
				continue
			}
			s.opts.Logger.Info("member votes now", "member", id)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.opts.askInterval):
		}
	}
}

// unseated lists the members of the group without a vote.
func (s *Store) unseated(r *hraft.Raft) []uint64 {
	var ids []uint64
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.Suffrage != hraft.Voter {
			ids = append(ids, memberID(server.ID))
		}
	}
	return ids
}

// majorityVotes says whether a write that is committed is on a majority of all
// members: not while the group forms.
func (s *Store) majorityVotes(r *hraft.Raft) bool {
	servers := r.GetConfiguration().Configuration().Servers
	voters := 0
	for _, server := range servers {
		if server.Suffrage == hraft.Voter {
			voters++
		}
	}
	return voters > len(servers)/2
}

// nextMillis is the leader's clock, never below what was stamped before.
func (s *Store) nextMillis() uint64 { return s.clock.Millis(s.Machine.Clock()) }

// nowMillis is the clock of the store as it is seen here: on the leader it is
// the clock that stamps.
func (s *Store) nowMillis(context.Context) (uint64, error) {
	if s.closed() {
		return 0, store.ErrClosed
	}
	return s.nextMillis(), nil
}

// confirmed asks a quorum whether this member leads.
func (s *Store) confirmed(ctx context.Context) (bool, error) {
	r, now := s.raft.Load(), s.reign.Load()
	if r == nil || now == nil || !now.ready.Load() {
		return false, nil
	}
	err := await(ctx, r.VerifyLeader())
	if ctx.Err() != nil {
		return false, &store.UnavailableError{Err: ctx.Err()}
	}
	return err == nil && s.reign.Load() == now, nil
}

// await waits for the library, which answers at the latest when leadership is
// lost, but not always when it is shut down.
func await(ctx context.Context, f hraft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-answer:
		return err
	}
}

func (s *Store) mayPlan(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.AttemptTimeout)
	defer cancel()
	return s.confirmed(ctx)
}

// acquireLease is confirmed leadership, whoever asks (control plane 7.8). The
// first call of a reign advances the placement token, which fences what an
// earlier leader still plans.
func (s *Store) acquireLease(ctx context.Context, _ string, _ time.Duration) (store.Lease, error) {
	held, err := s.mayPlan(ctx)
	if err != nil || !held {
		return store.Lease{}, err
	}
	r, now := s.raft.Load(), s.reign.Load()
	if now == nil {
		return store.Lease{}, nil
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	if now.leased {
		return store.Lease{Held: true}, nil
	}
	holder := fmt.Sprintf("member %d in term %d", s.opts.NodeID, r.CurrentTerm())
	if _, err := s.Machine.TakeLease(ctx, holder); err != nil {
		return store.Lease{}, err
	}
	if s.reign.Load() != now {
		return store.Lease{}, nil
	}
	now.leased = true
	return store.Lease{Held: true, TakenOver: true}, nil
}

// releaseLease does nothing: leadership is handed over by Close.
func (s *Store) releaseLease(context.Context, string) error { return nil }
