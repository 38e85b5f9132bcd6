package raft

import (
	"context"
	"errors"
	"fmt"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store"
)

// maxLag is how far behind its log a member may be and still be ready, in
// entries (control plane 12.7).
const maxLag = 32

// lagPatience is how long a member that is further behind has to apply what it
// had when it was asked: under load the log always leads.
const lagPatience = time.Second

var (
	errStarting   = errors.New("this member is starting")
	errCatchingUp = errors.New("this member has no state of its own and catches up with its group; it neither votes nor answers until then")
)

// A reason says why the state is not to be shown.
type reason struct{ err error }

// bar keeps the state from being shown.
func (s *Store) bar(err error) {
	before := s.barred.Swap(&reason{err})
	switch {
	case errors.Is(err, errStarting): // as every member once
		s.opts.Logger.Debug("this member does not answer", "reason", err)
	case before == nil || before.err.Error() != err.Error():
		s.opts.Logger.Warn("this member does not answer", "reason", err)
	}
}

func (s *Store) unbar() {
	if s.Stuck() == nil { // what stopped it stays
		s.barred.Store(nil)
	}
}

// stop is called when the machine has met a command that it does not know.
// What comes after it cannot be applied, so the member must not answer any more.
func (s *Store) stop(err error) {
	s.counts.unsupported.Store(1)
	s.bar(err)
}

// serve says whether reads may be answered from the state.
func (s *Store) serve() error {
	if s.closed() {
		return store.ErrClosed
	}
	if b := s.barred.Load(); b != nil {
		return &store.UnavailableError{Err: b.err}
	}
	return nil
}

// health follows control plane 12.7: what this member knows by itself, without
// asking the others. A leader that loses its majority is none after four fifths
// of the election timeout, well below the five seconds that are allowed.
func (s *Store) health(ctx context.Context) error {
	if s.closed() {
		return store.ErrClosed
	}
	if b := s.barred.Load(); b != nil {
		return b.err
	}
	r := s.raft.Load()
	if r == nil {
		return errStarting
	}
	if _, id := r.LeaderWithID(); id == "" {
		return errNoLeader
	}
	if r.State() == hraft.Leader {
		if now := s.reign.Load(); now == nil || !now.ready.Load() {
			return errors.New("this member is taking over as the leader")
		}
	} else if r.LastIndex() == 0 {
		return errors.New("the log of this member is empty")
	}
	if !s.majorityVotes(r) {
		return errForming
	}
	return lag(ctx, r)
}

func lag(ctx context.Context, r *hraft.Raft) error {
	ctx, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	last := r.LastIndex()
	for {
		applied := r.AppliedIndex()
		if applied+maxLag >= last {
			return nil
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("this member is %d entries behind its log, at most %d are allowed", last-applied, maxLag)
		}
	}
}
