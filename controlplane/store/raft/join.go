package raft

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	hraft "github.com/hashicorp/raft"
)

// targetInterval is after how long a target is asked for anew.
const targetInterval = 30 * time.Second

// join takes a member whose vote is withheld into its group (control plane
// 12.5). It either forms the group, or catches up with it, and then votes.
//
// A disk that was lost took promises with it: whom the member voted for, and
// what it had acknowledged. So before it hears any leader it stays silent for
// longer than an election and a leadership without its support can last; a
// leader that reaches it after that has a majority without it. And it votes
// only with everything that such a leader had. A member that a confirmed leader
// knows as one without a vote has promised nothing yet, and need not be silent.
func (s *Store) join(ctx context.Context) {
	begun := time.Now()
	for {
		exists, empty := s.survey(ctx)
		last, err := s.lastIndex()
		if err != nil {
			s.bar(err)
			return
		}
		if exists || last > 1 {
			break
		}
		// Only the founder's own first entry, or nothing, is here and with a majority
		// of the others.
		if s.opts.InitialState == New && s.opts.founder() && 2*(empty+1) > len(s.opts.Peers) {
			if err := s.found(); err != nil {
				s.bar(fmt.Errorf("the group could not be formed: %w", err))
			}
			return
		}
		s.bar(s.waitingReason())
		if !sleep(ctx, s.opts.askInterval) {
			return
		}
	}
	s.bar(errCatchingUp)
	for silent := begun.Add(4 * s.opts.ElectionTimeout); time.Now().Before(silent); {
		if t, ok := s.target(ctx); ok && !t.Voter {
			break
		}
		if !sleep(ctx, min(s.opts.askInterval, time.Until(silent))) {
			return
		}
	}
	if err := s.start(); err != nil {
		s.bar(err)
		return
	}
	s.catchUp(ctx)
}

func (s *Store) waitingReason() error {
	if s.opts.InitialState == New {
		return errors.New("this member is new and waits for the others to form the group")
	}
	return fmt.Errorf("this member has no state and reaches no member that has: is the group running? (a new group is formed with the initial state %q)", New)
}

// survey asks all others how far their logs go.
func (s *Store) survey(ctx context.Context) (exists bool, empty int) {
	var mu sync.Mutex
	s.others(func(id uint64) {
		var st standing
		if err := s.ask(ctx, id, standingRoute, &st); err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if st.LastLogIndex >= 1 {
			exists = true
		} else {
			empty++
		}
	})
	return exists, empty
}

// others calls f for every other member at once, and waits.
func (s *Store) others(f func(id uint64)) {
	var wg sync.WaitGroup
	for id := range s.opts.Peers {
		if id != s.opts.NodeID {
			wg.Go(func() { f(id) })
		}
	}
	wg.Wait()
}

// found forms the group: this member votes, the others get everything from it
// and are made voters one by one. No write is accepted before a majority votes.
func (s *Store) found() error {
	servers := []hraft.Server{{ID: serverID(s.opts.NodeID), Address: serverAddress(s.opts.NodeID), Suffrage: hraft.Voter}}
	for id := range s.opts.Peers {
		if id != s.opts.NodeID {
			servers = append(servers, hraft.Server{ID: serverID(id), Address: serverAddress(id), Suffrage: hraft.Nonvoter})
		}
	}
	if err := s.bootstrap(servers); err != nil {
		return err
	}
	if err := s.grantVote(); err != nil {
		return err
	}
	s.opts.Logger.Info("forming the group", "cluster", s.opts.ClusterID, "members", len(servers))
	if err := s.start(); err != nil {
		return err
	}
	s.unbar()
	return nil
}

// catchUp lets the member vote when it has applied everything that a confirmed
// leader had.
func (s *Store) catchUp(ctx context.Context) {
	for {
		t, ok := s.target(ctx)
		if ok && s.reach(ctx, t.Index) {
			if err := s.grantVote(); err != nil {
				s.bar(err)
				return
			}
			s.opts.Logger.Info("caught up with the group, voting from now on", "index", t.Index)
			s.unbar()
			return
		}
		if !sleep(ctx, s.opts.askInterval) {
			return
		}
	}
}

// target asks for a confirmed leader, and where to catch up to.
func (s *Store) target(ctx context.Context) (newest target, ok bool) {
	var mu sync.Mutex
	route := targetRoute + "?member=" + strconv.FormatUint(s.opts.NodeID, 10)
	s.others(func(id uint64) {
		var t target
		if err := s.ask(ctx, id, route, &t); err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !ok || t.Index > newest.Index {
			newest, ok = t, true
		}
	})
	return newest, ok
}

// reach waits until everything up to index is applied.
func (s *Store) reach(ctx context.Context, index uint64) bool {
	deadline := time.Now().Add(targetInterval)
	r := s.raft.Load()
	for r.AppliedIndex() < index {
		if time.Now().After(deadline) || !sleep(ctx, s.opts.askInterval/10) {
			return false
		}
	}
	snapshot, err := s.snapshotIndex()
	if err != nil {
		return false
	}
	last, err := lastApplicable(s.disk, snapshot, index)
	if err != nil {
		return false
	}
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return s.machine.applied.wait(wait, last) == nil
}

// grantVote ends the time without a vote, on the disk first.
func (s *Store) grantVote() error {
	if err := s.disk.Mark(s.opts.ClusterID, s.opts.NodeID, false); err != nil {
		return err
	}
	s.withheld.Store(false)
	return nil
}

// sleep says whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
