package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// follow reads on in both feeds, and says how many changes there were.
func (c *copies) follow(ctx context.Context, s store.Store) (int, error) {
	n, err := c.streams.follow(ctx, s)
	if err != nil {
		return n, fmt.Errorf("streams: %w", err)
	}
	m, err := c.namespaces.follow(ctx, s)
	if err != nil {
		return n, fmt.Errorf("namespaces: %w", err)
	}
	return n + m, nil
}

func (c *copies) snapshot(ctx context.Context, s store.Store) error {
	return errors.Join(c.streams.snapshot(ctx, s), c.namespaces.snapshot(ctx, s))
}

// audit reads all changes of one store, from the first on.
func (r *run) audit(i int) error {
	rng := rand.New(rand.NewPCG(r.o.Seed, uint64(1000+i)))
	c := newCopies()
	c.streams.fill(r.start.streams)
	c.namespaces.fill(r.start.namespaces)
	for {
		n, err := c.follow(r.ctx, r.stores[i])
		if err != nil {
			return err
		}
		r.audited[i].Add(uint64(n))
		r.cursors[i].Store(c.streams.next)
		if ended, err := r.ended(c); ended || err != nil {
			return err
		}
		if n == 0 {
			if err := r.pause(rng, time.Millisecond); err != nil {
				return err
			}
		}
	}
}

// ended says whether a reader is at the end, and what is wrong with its copy
// there.
func (r *run) ended(c *copies) (bool, error) {
	select {
	case <-r.done:
	default:
		return false, nil
	}
	if r.ctx.Err() != nil {
		return false, r.ctx.Err()
	}
	if c.streams.next < r.final.streams.NextSeq || c.namespaces.next < r.final.namespaces.NextSeq {
		return false, nil
	}
	return true, errors.Join(c.streams.differs(r.final.streams), c.namespaces.differs(r.final.namespaces))
}

// watch reads from any store, at any moment.
func (r *run) watch(watcher int) error {
	rng := rand.New(rand.NewPCG(r.o.Seed, uint64(2000+watcher)))
	pick := func() store.Store { return r.stores[rng.IntN(len(r.stores))] }
	c := newCopies()
	if err := c.snapshot(r.ctx, pick()); err != nil {
		return err
	}
	for {
		n, err := c.follow(r.ctx, pick())
		r.followed.Add(uint64(n))
		again := false
		switch {
		case errors.Is(err, errResnapshot):
			// It slept for too long, or the store is behind the one before.
			again = true
		case err != nil:
			return err
		}
		if ended, err := r.ended(c); ended || err != nil {
			return err
		}
		select {
		case <-r.snapshots:
			again = true
		default:
		}
		if again {
			r.taken.Add(1)
			if err := c.snapshot(r.ctx, pick()); err != nil {
				return err
			}
		}
		if err := r.pause(rng, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
