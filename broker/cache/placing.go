package cache

import (
	"context"

	"github.com/felixlog/felix/broker/placed"
)

// Assign has a shard of a placed cache served from now on; the log of a durable
// one is opened in the background, and one in memory begins empty. An order that
// is not newer than the one held changes nothing. Errors:
// [placed.ErrNotPlaced], [ErrRemoved], [*ShardError].
func (c *Cache) Assign(shard uint32, generation uint64) error {
	c.placing.Lock()
	defer c.placing.Unlock()
	seat, err := c.seat(shard)
	if err == nil && seat.Assign(generation) {
		c.serve(shard)
	}
	return err
}

// Unassign has a shard of a placed cache served no longer: watches end with a
// [*placed.NotServedError], requests are refused with one, and what was accepted
// is finished before the log is closed, in the background. An order that is not
// newer than the one held changes nothing. Errors as [Cache.Assign].
func (c *Cache) Unassign(shard uint32, generation uint64, reason string) error {
	c.placing.Lock()
	defer c.placing.Unlock()
	seat, err := c.seat(shard)
	if err == nil && seat.Unassign(generation, reason) {
		c.yield(shard)
	}
	return err
}

// Release is Unassign whatever the generation, which it forgets. Errors as
// [Cache.Assign].
func (c *Cache) Release(shard uint32, reason string) error {
	c.placing.Lock()
	defer c.placing.Unlock()
	seat, err := c.seat(shard)
	if err == nil && seat.Release(reason) {
		c.yield(shard)
	}
	return err
}

// seat finds the orders about a shard; placing is held.
func (c *Cache) seat(shard uint32) (*placed.Seat, error) {
	if err := c.ended(); err != nil {
		return nil, err
	}
	switch {
	case c.seats == nil:
		return nil, placed.ErrNotPlaced
	case shard >= c.opts.Shards:
		return nil, &ShardError{Cache: c.name, Shard: shard, Shards: c.opts.Shards}
	}
	return &c.seats[shard], nil
}

// serve puts a part in place that serves; placing is held.
func (c *Cache) serve(i uint32) {
	p := &part{}
	switch {
	case c.opts.Copies > 1:
		p.refused = placed.NotReplicated(c.placedName(i), c.opts.Copies, c.generation(i))
	case c.opts.Durable:
		p.log = c.store.newLogShard(c, i)
	default:
		p.scope = c.store.ids.Add(1)
	}
	c.parts[i].Store(p)
}

// yield ends the part that serves and leaves its place vacant; placing is held.
func (c *Cache) yield(i uint32) {
	old := c.parts[i].Load()
	switch cause := c.notServed(i, placed.Moving); {
	case old.log != nil:
		c.vacate(i, old.log.gone)
		c.store.leaving.Go(func() { endLogs([]*part{old}, cause) })
	case old.refused == nil:
		c.vacate(i, nil)
		c.store.removeScope(old.scope)
	default:
		c.vacate(i, nil)
	}
}

// vacate puts a part in place that refuses everything; placing is held.
func (c *Cache) vacate(i uint32, leaving <-chan struct{}) {
	c.parts[i].Store(&part{refused: c.notServed(i, placed.NotAssigned), leaving: leaving})
}

func (c *Cache) notServed(i uint32, reason placed.Reason) *placed.NotServedError {
	e := &placed.NotServedError{Shard: c.placedName(i), Reason: reason}
	if c.seats != nil {
		e.Generation, e.Detail = c.seats[i].Generation(), c.seats[i].Reason()
	}
	return e
}

func (c *Cache) generation(i uint32) uint64 {
	if c.seats == nil {
		return 0
	}
	return c.seats[i].Generation()
}

func (c *Cache) placedName(i uint32) placed.Shard {
	return placed.Shard{Kind: "cache", Tenant: c.name.Tenant, Namespace: c.name.Namespace, Name: c.name.Name, Index: i}
}

// ShardStatus says how a shard stands with this broker (control plane 6.6).
func (c *Cache) ShardStatus(i uint32) placed.Status {
	c.placing.Lock()
	defer c.placing.Unlock()
	st := placed.Status{State: placed.Active}
	if c.seats != nil {
		st.Generation, st.Reason = c.seats[i].Generation(), c.seats[i].Reason()
	}
	if err := c.ended(); err != nil {
		st.State, st.Reason = placed.Closed, err.Error()
		return st
	}
	if c.parts == nil {
		return st
	}
	switch p := c.parts[i].Load(); {
	case p.refused != nil:
		return p.vacancy(st)
	case p.log != nil && p.log.values.Opened() == nil:
		st.State = placed.Opening
		if err := p.log.values.Failure(); err != nil {
			st.State, st.Reason = placed.Failed, err.Error()
		}
	case p.log != nil:
		if err := p.log.values.Opened().Log.Err(); err != nil {
			st.State, st.Reason = placed.Failed, err.Error()
		}
	}
	return st
}

// vacancy completes the status of a shard that is not served.
func (p *part) vacancy(st placed.Status) placed.Status {
	st.State = placed.Unassigned
	switch {
	case p.refused.Reason == placed.Unreplicated:
		st.State, st.Reason = placed.Failed, p.refused.Detail
	case p.leaving != nil:
		select {
		case <-p.leaving:
		default:
			st.State = placed.Draining
		}
	}
	return st
}

// LetGo waits until the shards of a name that have ended, removed caches'
// included, have let go of their logs. It returns the cause of ctx if that ends
// first.
func (s *Store) LetGo(ctx context.Context, name Name) error {
	for _, sh := range s.logShards() {
		if sh.cache.name != name || sh.cause.Load() == nil {
			continue
		}
		select {
		case <-sh.gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
