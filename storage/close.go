package storage

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Close closes every log, several at once, waits for those being opened, and
// gives the root free. What is asked of the store afterwards is answered with
// ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := make([]*slot, 0, len(s.slots))
	for _, slot := range s.slots {
		open = append(open, slot)
	}
	s.mu.Unlock()

	s.space.stop()
	s.stopDeletes()
	s.cleaning.Wait()
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(s.cfg.OpenParallel + 1)
	for _, slot := range open {
		group.Go(func() error {
			<-slot.done
			if slot.log == nil {
				return nil
			}
			if err := slot.log.Close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions report through failed
	if s.journal != nil {
		failed = append(failed, s.journal.Close())
	}
	return errors.Join(append(failed, s.lock.Close())...)
}

// CloseLog closes one log, where it is open: for a shard this broker has no
// part in any more. A later OpenLog opens it again.
func (s *Store) CloseLog(ctx context.Context, space Space, key Key) error {
	s.mu.Lock()
	slot := s.slots[slotKey{space, key}]
	s.mu.Unlock()
	if slot == nil {
		return nil
	}
	log, err := slot.wait(ctx)
	if err != nil {
		return err
	}
	return log.Close()
}
