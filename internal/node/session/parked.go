package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
)

// A parking holds the publishes of one stream that found no room in the core,
// and those that came behind them, in order. They wait there one after the
// other, each as long as its policy says, while the stream's reader goes on:
// answers owed leave, and other requests of the stream are served. A batch
// parked is a copy; the copies of one stream are bounded by maxParked, and
// beyond it the stream is not read on.
type parking struct {
	s *control

	waiting atomic.Int32 // len(queue), for the reader: only it adds
	mu      sync.Mutex
	queue   []parkedPublish
	bytes   int
	running bool
	left    sync.Cond // one has left the queue
}

// maxParked bounds the bytes of the batches one stream may have parked. A
// larger batch waits on the reader's goroutine, uncopied.
const maxParked = 256 << 10

// parkedOverhead is what a parked batch costs beside its bytes.
const parkedOverhead = 256

type parkedPublish struct {
	shard  *stream.Shard
	batch  broker.Batch
	policy broker.Policy
	done   *owed // nil: nobody waits for it
	since  time.Time
}

func (p *parkedPublish) size() int {
	size := parkedOverhead + len(p.batch.Block)
	for _, c := range p.batch.State {
		size += len(c.Key) + len(c.Value)
	}
	return size
}

func (k *parking) init(s *control) {
	k.s = s
	k.left.L = &k.mu
}

// idle says that nothing is parked, to the reader, who alone could change it.
func (k *parking) idle() bool { return k.waiting.Load() == 0 }

// park queues a publish behind those that are parked. It waits only for the
// bound of the queue.
func (s *control) park(ctx context.Context, p parkedPublish) verdict {
	k := &s.parked
	if p.policy == broker.Drop && !k.fits(p.size()) {
		s.c.srv.metrics.Publish.Dropped.Inc()
		return goOn
	}
	if !k.fits(p.size()) {
		// What is owed must leave before this goroutine waits.
		if s.out.flush() != nil {
			return finish
		}
		k.awaitRoom(p.size())
		defer s.out.beginRound()
	}
	if p.size() > maxParked {
		k.publish(ctx, &p)
		return goOn
	}
	p.batch.Block = slices.Clone(p.batch.Block)
	k.mu.Lock()
	k.queue = append(k.queue, p)
	k.waiting.Store(int32(len(k.queue)))
	k.bytes += p.size()
	if !k.running {
		k.running = true
		s.c.streams.Add(1)
		go func() {
			defer s.c.streams.Done()
			k.run(ctx)
		}()
	}
	k.mu.Unlock()
	return goOn
}

// fits says whether a batch of the given size may be parked now.
func (k *parking) fits(size int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fitsLocked(size)
}

func (k *parking) fitsLocked(size int) bool { return k.bytes+size <= maxParked }

// awaitRoom waits until a batch of the given size fits, or is the only one.
func (k *parking) awaitRoom(size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 && !k.fitsLocked(size) {
		k.left.Wait()
	}
}

// run hands the parked publishes over, the oldest first, until none is left.
// The one in hand keeps its place, so that none overtakes it.
func (k *parking) run(ctx context.Context) {
	for {
		k.mu.Lock()
		if len(k.queue) == 0 {
			k.queue, k.running = nil, false
			k.mu.Unlock()
			return
		}
		p := k.queue[0]
		k.mu.Unlock()
		k.publish(ctx, &p)
		k.mu.Lock()
		k.bytes -= p.size()
		k.queue[0] = parkedPublish{}
		k.queue = k.queue[1:]
		k.waiting.Store(int32(len(k.queue)))
		k.left.Broadcast()
		k.mu.Unlock()
	}
}

// publish waits with one publish, on whatever goroutine. One that has waited
// its time behind others is refused if there is no room now.
func (k *parking) publish(ctx context.Context, p *parkedPublish) {
	srv := k.s.c.srv
	policy := p.policy
	if policy == broker.Wait && srv.clock.Now().Sub(p.since) >= srv.cfg.QueueWait {
		policy = broker.Fail
	}
	if p.done == nil {
		publishUnacked(ctx, srv, k.s.identity, p.shard, p.batch, policy)
		return
	}
	if err := srv.broker.Publish(ctx, p.shard, k.s.identity.publish, p.batch, policy, p.done); err != nil {
		p.done.fail(err)
		p.done.Flush()
		return
	}
	p.done.ledger.left(p.done, srv.clock.Now())
}

// settle waits until nothing is parked.
func (k *parking) settle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 {
		k.left.Wait()
	}
}
