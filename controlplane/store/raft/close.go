package raft

import (
	"context"
	"errors"
	"time"

	hraft "github.com/hashicorp/raft"
)

// shutdown ends the member: writes first, then leadership, which another member
// takes over at once, then everything else. It is called once, by Close.
func (s *Store) shutdown() error {
	s.closing.Store(true)
	r := s.raft.Load()
	if r != nil {
		s.drain()
		if s.mux != nil && r.State() == hraft.Leader {
			s.handOver(r)
		}
	}
	close(s.done)
	s.die()
	s.joining.Wait()
	var errs []error
	if r = s.raft.Load(); r != nil {
		if s.opts.alone() && s.Stuck() == nil {
			// The next start reads one file instead of applying the log.
			if err := r.Snapshot().Error(); err != nil && !errors.Is(err, hraft.ErrNothingNewToSnapshot) {
				errs = append(errs, err)
			}
		}
		errs = append(errs, r.Shutdown().Error())
	}
	if s.mux != nil {
		s.caller.CloseIdleConnections()
		errs = append(errs, s.mux.Close())
	} else if s.opts.Listener != nil {
		errs = append(errs, s.opts.Listener.Close())
	}
	s.work.Wait()
	if s.disk != nil {
		errs = append(errs, s.disk.Close())
	}
	return errors.Join(errs...)
}

// drain waits for the writes that are in the log already, and lets no other in,
// but no longer than an attempt lasts.
func (s *Store) drain() {
	timeout := time.After(s.opts.AttemptTimeout)
	for range cap(s.pending) {
		select {
		case s.pending <- struct{}{}:
		case <-timeout:
			return
		}
	}
}

func (s *Store) handOver(r *hraft.Raft) {
	ctx, cancel := context.WithTimeout(s.life, 2*s.opts.ElectionTimeout)
	defer cancel()
	if err := await(ctx, r.LeadershipTransfer()); err != nil {
		s.opts.Logger.Warn("leadership not handed over", "error", err)
	}
}
