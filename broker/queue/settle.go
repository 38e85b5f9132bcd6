package queue

import (
	"context"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
)

// Ack finishes a record, whoever holds it (wire 12.2). done hears when that is
// on disk: the cursor there has passed the record, or it lies behind a record
// that is not finished, and is finished in memory. After an error of the log the
// record is finished in memory all the same, and nobody gets it while this
// broker serves the group; a repeated ack writes again.
//
// Errors for done: *tracker.StaleError, *tracker.InvalidError,
// [*UnavailableError] of a group that is not ready, those of the log
// (*shardlog.FullError, *shardlog.IOError, shardlog.ErrBusy,
// *shardlog.SyncFailedError), why the shard serves no longer.
func (s *Store) Ack(r Ref, offset uint64, done Done) {
	g, err := s.use(r)
	if err != nil {
		done.Settled(err)
		return
	}
	defer g.release()
	if err := g.enter(context.Background()); err != nil {
		done.Settled(err)
		return
	}
	_, tail := r.Shard.Bounds()
	settled, err := g.tracker.Ack(offset, tail)
	switch {
	case err != nil:
		g.outbox.answer(done, err)
	case settled.Redriven || settled.Duplicate && g.letters.owesRemoval(offset):
		g.finishRedriven(offset, func(err error) {
			if err != nil {
				g.outbox.answer(done, err)
			} else {
				g.awaitFinish(offset, done)
			}
		})
		g.finished(offset, settled)
	default:
		g.finished(offset, settled)
		g.awaitFinish(offset, done)
	}
	g.wake(tail)
	g.leave(teller{own: done})
}

// finished does what follows from a record that is settled.
func (g *group) finished(offset uint64, s tracker.Settled) {
	if s.Counted && !s.Redriven { // of a redriven one it goes with the letter
		g.dropCount(offset)
	}
	if s.Moved {
		g.mark()
	}
}

// finishRedriven removes what the logs have of a redriven record that is
// finished: its count, and then its letter, by which it would be owed. A count
// that stayed would be taken for that of other deliveries if a seek brought the
// record again.
func (g *group) finishRedriven(offset uint64, ended func(err error)) {
	if g.letters.isRedriven(offset) {
		g.letters.redriven[offset] = true
	}
	over := g.letters.change(offset)
	end := func(err error) {
		over()
		if ended != nil {
			ended(err)
		}
	}
	g.removeCount(offset, func(err error) {
		if err != nil {
			end(err)
		} else {
			g.dropLetter(offset, end)
		}
	})
}

// Nack hands a record back: owed at once, or after delay, which is bounded by
// Config.MaxVisibility. With attempts it is refused unless that very delivery's
// claim stands (wire 12.2). At the limit of attempts the record becomes a dead
// letter instead. Errors: *tracker.StaleError, *tracker.InvalidError,
// [*UnavailableError], why the shard serves no longer.
func (s *Store) Nack(r Ref, offset uint64, attempts uint32, delay time.Duration) error {
	g, err := s.use(r)
	if err != nil {
		return err
	}
	defer g.release()
	if err := g.enter(context.Background()); err != nil {
		return err
	}
	_, tail := r.Shard.Bounds()
	var due tracker.Time
	if delay > 0 {
		due = s.now() + int64(min(delay, s.cfg.MaxVisibility))
	}
	bury, err := g.tracker.Nack(offset, attempts, due, tail)
	if bury {
		g.bury(offset, nil)
	}
	g.wake(tail)
	g.leave(teller{})
	return err
}

// Extend keeps a delivery's claim standing for a time from now, bounded by
// Config.MaxVisibility, and says how long that is (wire 12.2). Errors as
// [Store.Nack].
func (s *Store) Extend(r Ref, offset uint64, attempts uint32, extend time.Duration) (granted time.Duration, err error) {
	if extend <= 0 {
		return 0, &tracker.InvalidError{Offset: offset, Detail: "an extension takes time"}
	}
	g, err := s.use(r)
	if err != nil {
		return 0, err
	}
	defer g.release()
	if err := g.enter(context.Background()); err != nil {
		return 0, err
	}
	granted = min(extend, s.cfg.MaxVisibility)
	err = g.tracker.Extend(offset, attempts, s.now()+int64(granted))
	g.leave(teller{})
	if err != nil {
		return 0, err
	}
	return granted, nil
}

// DeadLetter gives up on a record in play, whoever holds it: it is listed among
// the dead letters, and then finished as by an ack (wire 12.2). Errors as
// [Store.Ack], those of [Store.Ready], and the cause of ctx, after which the
// outcome is not known.
func (s *Store) DeadLetter(ctx context.Context, r Ref, offset uint64) error {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return err
	}
	defer g.release()
	if err := g.enter(ctx); err != nil {
		return err
	}
	_, tail := r.Shard.Bounds()
	done := make(wait, 1)
	if !g.awaitBurial(offset, done) {
		if err := g.tracker.Bury(offset, tail); err != nil {
			g.outbox.answer(done, err)
		} else {
			g.bury(offset, done)
		}
	}
	g.leave(teller{})
	return done.wait(ctx)
}

// A wait is a Done that somebody waits for.
type wait chan error

func (w wait) Settled(err error) { w <- err }

func (w wait) wait(ctx context.Context) error {
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
