package raft

import (
	"context"
	"errors"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store"
)

// currentInterval lies between two questions of this member to the leader what
// it must have applied, at the least: so many callers share one.
const currentInterval = 5 * time.Millisecond

// current returns when everything that any member had answered before the call
// is applied here. Writes are answered when the leader of their time has applied
// them, so that a leader has to be confirmed as one only, and the others wait
// for what it has applied (control plane 12.3). After Options.WriteTimeout, or
// when ctx ends, it is a [*store.UnavailableError].
func (s *Store) current(ctx context.Context) error {
	if s.closed() {
		return store.ErrClosed
	}
	if led, _ := s.mayPlan(ctx); led {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.WriteTimeout)
	defer cancel()
	if _, err := s.questions.Join(ctx); err != nil {
		if s.closed() {
			return store.ErrClosed
		}
		return &store.UnavailableError{Err: err}
	}
	return nil
}

// question asks the leader, again and again until ctx ends: there is none for a
// moment while it changes.
func (s *Store) question(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.life, cancel)()
	defer cancel()
	for {
		err := s.questionOnce(ctx)
		if err == nil || !sleep(ctx, s.opts.askInterval) {
			return err
		}
	}
}

func (s *Store) questionOnce(ctx context.Context) error {
	r := s.raft.Load()
	if r == nil {
		return errStarting
	}
	if r.State() == hraft.Leader {
		ok, err := s.confirmed(ctx)
		if err == nil && !ok {
			err = errNoLeader
		}
		return err
	}
	_, id := r.LeaderWithID()
	leader := memberID(id)
	if leader == 0 || leader == s.opts.NodeID {
		return errNoLeader
	}
	s.counts.questions.Add(1)
	var t target
	if err := s.ask(ctx, leader, targetRoute, &t); err != nil {
		return err
	}
	if err := s.machine.applied.wait(ctx, t.Applied); err != nil {
		return errors.New("this member is behind the leader and does not catch up in time")
	}
	return nil
}
