package client

import (
	"context"
	"slices"
	"sync"
)

// A batchQueue holds the batches that a subscription has read ahead: of one
// shard with a [Buffer], or of several. Batches of one shard stay in order.
type batchQueue struct {
	bufs     *bufferPool
	capacity int
	policy   BufferPolicy
	stats    *subscriptionCounters

	mu      sync.Mutex
	room    waitList
	arrived waitList
	items   []*queued
	batches int               // items that are batches
	missing map[uint32]uint64 // records dropped that no batch's gap counts yet
	free    []*queued
	closed  bool
}

// A queued is one batch with the bytes it views, or the end of a shard.
type queued struct {
	batch Batch
	buf   []byte
	live  bool // may be dropped
	err   error
}

func newBatchQueue(bufs *bufferPool, capacity int, policy BufferPolicy, stats *subscriptionCounters) *batchQueue {
	q := &batchQueue{bufs: bufs, capacity: capacity, policy: policy, stats: stats, missing: make(map[uint32]uint64)}
	q.room.mu, q.arrived.mu = &q.mu, &q.mu
	return q
}

// blank gives an item to fill.
func (q *batchQueue) blank() *queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		item := q.free[n-1]
		q.free = q.free[:n-1]
		return item
	}
	return new(queued)
}

// recycle takes back an item that take gave, nil included.
func (q *batchQueue) recycle(item *queued) {
	if item == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(item)
}

// release is recycle with mu held.
func (q *batchQueue) release(item *queued) {
	if item.buf != nil {
		q.bufs.put(item.buf)
	}
	*item = queued{}
	if len(q.free) < q.capacity {
		q.free = append(q.free, item)
	}
}

// put adds an item. What finds the queue full waits, or something is
// dropped, as the policy says; only live batches are dropped, and the end of
// a shard always has room.
func (q *batchQueue) put(ctx context.Context, item *queued) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for item.err == nil && q.batches >= q.capacity && !q.closed {
		switch {
		case q.policy == DropNew && item.live:
			q.drop(item)
			return nil
		case q.policy == DropOld && item.live && q.dropOldest():
			continue
		}
		if err := q.room.wait(ctx); err != nil {
			return err
		}
	}
	if q.closed {
		return ErrClosed
	}
	if item.err == nil {
		q.batches++
		item.batch.Gap += q.missing[item.batch.Shard]
		delete(q.missing, item.batch.Shard)
	}
	q.items = append(q.items, item)
	q.arrived.wake(1)
	return nil
}

// drop gives up a batch that is in no one's hands, and counts it in the gap
// of its shard's next one. mu is held.
func (q *batchQueue) drop(item *queued) {
	n := uint64(item.batch.Len())
	q.stats.dropped.Add(n)
	if item.batch.HasOffset {
		q.missing[item.batch.Shard] += n + item.batch.Gap
	}
	q.release(item)
}

// dropOldest drops the oldest live batch, if there is one. mu is held.
func (q *batchQueue) dropOldest() bool {
	for i, old := range q.items {
		if old.err != nil || !old.live {
			continue
		}
		q.items = slices.Delete(q.items, i, i+1)
		q.batches--
		shard := old.batch.Shard
		q.drop(old)
		for _, next := range q.items[i:] {
			if next.err == nil && next.batch.Shard == shard {
				next.batch.Gap += q.missing[shard]
				delete(q.missing, shard)
				break
			}
		}
		return true
	}
	return false
}

// take waits for the next item.
func (q *batchQueue) take(ctx context.Context) (*queued, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.closed {
			return nil, ErrClosed
		}
		if err := q.arrived.wait(ctx); err != nil {
			return nil, err
		}
	}
	item := q.items[0]
	q.items = slices.Delete(q.items, 0, 1)
	if item.err == nil {
		q.batches--
		q.room.wake(1)
	}
	return item, nil
}

// close ends the queue. What it holds is lost; whoever waits gives up.
func (q *batchQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.items = nil
	q.room.wakeAll()
	q.arrived.wakeAll()
}
