package stream

import "sync/atomic"

// counters of all streams of a broker.
type counters struct {
	batches, records, bytes                      atomic.Uint64
	enqueued, dequeued                           atomic.Uint64
	droppedBatches, droppedRecords, dropOldBatch atomic.Uint64
	parked, encodes                              atomic.Uint64
	subscriptions                                atomic.Int64
}

// Stats are the totals of a broker's streams since it started.
type Stats struct {
	// Batches, Records and Bytes (of payload) were appended.
	Batches, Records, Bytes uint64
	// Enqueued and Dequeued count batches into and out of subscription
	// queues; each is one envelope handed over. What was enqueued when its
	// subscription closed counts as dequeued.
	Enqueued, Dequeued uint64
	// DroppedBatches and DroppedRecords were discarded at a full queue.
	DroppedBatches, DroppedRecords uint64
	// DropOldEmulated is the part of DroppedBatches under DropOld.
	DropOldEmulated uint64
	// Blocked counts batches that had to wait for room under Block.
	Blocked uint64
	// Encodes counts frames encoded: at most one per batch and shape.
	Encodes uint64
	// Subscriptions are open now.
	Subscriptions int64
	// PooledBytes are idle in buffers kept for reuse.
	PooledBytes int64
}

// Queued is how many batches wait in subscription queues.
func (s Stats) Queued() uint64 { return s.Enqueued - min(s.Dequeued, s.Enqueued) }

// Stats reads the totals.
func (h *Hub) Stats() Stats {
	c := &h.counters
	s := Stats{
		Batches: c.batches.Load(), Records: c.records.Load(), Bytes: c.bytes.Load(),
		// Dequeued first: it must not be seen ahead of Enqueued.
		Dequeued:       c.dequeued.Load(),
		DroppedBatches: c.droppedBatches.Load(), DroppedRecords: c.droppedRecords.Load(),
		DropOldEmulated: c.dropOldBatch.Load(),
		Blocked:         c.parked.Load(), Encodes: c.encodes.Load(),
		Subscriptions: c.subscriptions.Load(),
	}
	s.Enqueued = c.enqueued.Load()
	h.pool.mu.Lock()
	s.PooledBytes = h.pool.idle
	h.pool.mu.Unlock()
	return s
}
