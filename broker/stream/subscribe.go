package stream

import (
	"context"
	"slices"
	"time"
)

// SubscribeOptions ask for a subscription. The zero value is a live one with
// the broker's defaults.
type SubscribeOptions struct {
	Start Start
	// Capacity is the queue in batches: 0 means the default, more than the
	// configured most is cut to it. [Subscription.Capacity] tells the grant.
	Capacity int
	// MaxBytes bounds the buffers in the queue; 0 means the default, and more
	// than that is cut to it.
	MaxBytes int64
	Policy   QueuePolicy
	// EndOnDrop ends the subscription of a durable stream at its first loss to
	// a full queue: what was queued before is delivered, then Next returns a
	// [*LaggedError].
	EndOnDrop bool
}

// Subscribe adds a reader. It sees each batch exactly once from its start on,
// whatever is published meanwhile. On a durable stream it waits until the
// shard's log is open or ctx ends. Errors: [*CursorError],
// [*UnavailableError], or why the shard serves no longer ([ErrRemoved]).
func (sh *Shard) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if err := sh.Ready(ctx); err != nil {
		if end := sh.Err(); end != nil {
			return nil, end
		}
		return nil, err
	}
	cfg := &sh.hub.cfg
	s := &Subscription{
		shard:    sh,
		policy:   o.Policy,
		capacity: int64(min(o.Capacity, cfg.QueueCapacityMax)),
		maxBytes: min(o.MaxBytes, cfg.QueueBytes),
		since:    sh.hub.clock.Now(),
		wake:     make(chan struct{}, 1),
	}
	if s.policy == DefaultPolicy {
		s.policy = sh.stream.opts.QueuePolicy
	}
	if s.policy == DefaultPolicy {
		s.policy = cfg.QueuePolicy
	}
	if s.capacity <= 0 {
		s.capacity = int64(cfg.QueueCapacity)
	}
	if s.maxBytes <= 0 {
		s.maxBytes = cfg.QueueBytes
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.end != nil {
		return nil, sh.end
	}
	start, err := o.Start.resolve(sh.oldest(), sh.tail)
	if err != nil {
		return nil, err
	}
	s.id = sh.hub.subscriptionIDs.Add(1)
	s.start, s.live = start, sh.tail
	s.history = sh.ring.from(start)
	if d := sh.durable; d != nil {
		s.live = max(start, d.visible)
		s.endOnDrop = o.EndOnDrop
		s.startReplay(d.opened().log)
	}
	s.slot = len(sh.slots)
	sh.slots = append(sh.slots, s)
	sh.snapshot = nil
	sh.hub.counters.subscriptions.Add(1)
	return s, nil
}

// leave takes s out of the registry.
func (sh *Shard) leave(s *Subscription) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.slot >= len(sh.slots) || sh.slots[s.slot] != s {
		return // the stream was removed meanwhile
	}
	last := len(sh.slots) - 1
	sh.slots[s.slot] = sh.slots[last]
	sh.slots[s.slot].slot = s.slot
	sh.slots[last] = nil
	sh.slots = sh.slots[:last]
	sh.snapshot = nil
}

// SubscriptionInfo describes a subscription for inspection.
type SubscriptionInfo struct {
	ID     uint64
	Policy QueuePolicy
	// Depth and Bytes occupy the queue now, of Capacity batches.
	Depth, Capacity int
	Bytes           int64
	// DroppedBatches and DroppedRecords were lost to a full queue.
	DroppedBatches, DroppedRecords uint64
	StartOffset                    uint64
	Age                            time.Duration
}

// Info describes the subscription as it is now.
func (s *Subscription) Info() SubscriptionInfo {
	batches, records := s.Dropped()
	return SubscriptionInfo{
		ID:             s.id,
		Policy:         s.policy,
		Depth:          int(s.depth.Load()),
		Bytes:          s.bytes.Load(),
		Capacity:       int(s.capacity),
		DroppedBatches: batches,
		DroppedRecords: records,
		StartOffset:    s.start,
		Age:            s.shard.hub.clock.Now().Sub(s.since),
	}
}

// Subscriptions lists the shard's open subscriptions by id.
func (sh *Shard) Subscriptions() []SubscriptionInfo {
	sh.mu.Lock()
	subs := slices.Clone(sh.slots)
	sh.mu.Unlock()
	infos := make([]SubscriptionInfo, len(subs))
	for i, s := range subs {
		infos[i] = s.Info()
	}
	slices.SortFunc(infos, func(a, b SubscriptionInfo) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return infos
}
