package queue

import (
	"context"
	"slices"

	"github.com/felixlog/felix/storage/kvlog"
)

// DeadLetters lists the offsets a group gave up on, ascending; those being given
// up now included. Errors as [Store.DeadLetter].
func (s *Store) DeadLetters(ctx context.Context, r Ref) ([]uint64, error) {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	defer g.release()
	if err := g.settle(ctx); err != nil {
		return nil, err
	}
	dead := slices.Clone(g.letters.dead)
	g.leave(teller{})
	return dead, nil
}

// Discard drops a dead letter. The record stays in the stream. Error:
// [*NotListedError], and as [Store.DeadLetter].
func (s *Store) Discard(ctx context.Context, r Ref, offset uint64) error {
	return s.changeLetter(ctx, r, offset, func(g *group) (letterChange, error) {
		if !g.letters.isDead(offset) {
			return letterChange{}, &NotListedError{Group: g.name, Offset: offset}
		}
		return letterChange{
			write: kvlog.Write{Op: kvlog.Delete, Key: recordKey(g.name, offset)},
			then:  func() { g.letters.remove(offset) },
		}, nil
	})
}

// Redrive puts a dead letter back in play: the record is owed again, as if never
// handed out, and the cursor does not move back. One that is in play again
// already stays so. Error: [*NotListedError], also when retention has taken the
// record, and as [Store.DeadLetter].
func (s *Store) Redrive(ctx context.Context, r Ref, offset uint64) error {
	return s.changeLetter(ctx, r, offset, func(g *group) (letterChange, error) {
		oldest, _ := r.Shard.Bounds()
		switch inPlay := g.letters.isRedriven(offset) && !g.letters.owesRemoval(offset); {
		case inPlay:
			return letterChange{}, nil
		case !g.letters.isDead(offset) && !g.letters.isRedriven(offset):
			return letterChange{}, &NotListedError{Group: g.name, Offset: offset}
		case offset < oldest:
			return letterChange{}, &NotListedError{Group: g.name, Offset: offset, Trimmed: true}
		}
		return letterChange{
			write:     kvlog.Write{Key: recordKey(g.name, offset), Value: []byte(redriven)},
			countless: true,
			then: func() {
				g.letters.put(offset, true)
				g.tracker.Redrive(offset)
				g.graves.remove(offset)
				g.trimmed = 0 // it may lie below the base by now
				_, tail := g.shard.src.Bounds()
				g.wake(tail)
			},
		}, nil
	})
}

// A letterChange is one write to a dead letter and what it means; without a key
// there is nothing to do.
type letterChange struct {
	write kvlog.Write
	// countless: the count of the record's attempts has to be gone before.
	countless bool
	then      func()
}

// changeLetter changes a dead letter, one change of each at a time. decide is
// called with the group's lock held.
func (s *Store) changeLetter(ctx context.Context, r Ref, offset uint64, decide func(*group) (letterChange, error)) error {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return err
	}
	defer g.release()
	for {
		if err := g.enter(ctx); err != nil {
			return err
		}
		if other := g.letters.changing[offset]; other != nil {
			g.leave(teller{})
			select {
			case <-other:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		change, err := decide(g)
		if err != nil || change.write.Key == nil {
			g.leave(teller{})
			return err
		}
		done := make(wait, 1)
		over := g.letters.change(offset)
		ended := func(err error) {
			over()
			switch {
			case err == nil:
				change.then()
			case change.countless && g.graves.holds(offset):
				g.dig(offset, nil) // it stays a dead letter ahead of a gap
			}
			g.outbox.answer(done, err)
		}
		letter := &write{letter: true, Write: change.write, ended: ended}
		if change.countless {
			g.removeCount(offset, func(err error) {
				if err != nil {
					ended(err)
				} else {
					g.push(letter)
				}
			})
		} else {
			g.push(letter)
		}
		g.leave(teller{})
		return done.wait(ctx)
	}
}

// settle lets go of what is due and waits until the dead letters under way and
// the cursor are on disk, or were refused; then it enters the group.
func (g *group) settle(ctx context.Context) error {
	if err := g.enter(ctx); err != nil {
		return err
	}
	oldest, tail := g.shard.src.Bounds()
	g.trim(oldest)
	g.lapse()
	g.wake(tail)
	buried := make(wait, 1)
	g.awaitBurials(buried)
	g.leave(teller{})
	if err := buried.wait(ctx); err != nil {
		return err
	}
	if err := g.enter(ctx); err != nil {
		return err
	}
	if !g.marked() {
		marked := make(wait, 1)
		g.await(need{committed: g.tracker.Committed(), handed: g.tracker.Handed(), done: marked})
		g.leave(teller{})
		select {
		case <-marked: // what is on disk is told, whatever became of the write
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return g.enter(ctx)
	}
	return nil
}
