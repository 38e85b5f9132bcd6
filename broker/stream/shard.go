package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/storage/producer"
)

// A Shard is one ordered sequence of records, and the handle publishes and
// subscriptions go by once its name is resolved. A handle stays valid in
// memory for ever, but serves only while [Shard.Active].
type Shard struct {
	hub     *Hub
	stream  *Stream
	id      uint64
	index   uint32
	lane    *schedule.Lane
	account *admission.Account
	active  atomic.Bool
	// life ends with the shard; die ends it.
	life context.Context
	die  context.CancelCauseFunc

	// claimed is the next offset to give out, and producers remembers numbered
	// batches, where there is no log. Whoever holds the lane owns them.
	claimed   uint64
	producers *producer.Table

	durable *durable // nil in memory
	// before is closed when whoever had the shard's logs before has let go of
	// them, nil when nobody had; gone when this one has. A shard that is vacant
	// has none to let go of.
	before, gone chan struct{}
	vacant       bool

	listeners listeners

	mu    sync.Mutex
	tail  uint64 // offset after the last applied record
	end   error  // why it serves no longer
	ring  ring
	slots []*Subscription
	// snapshot is slots as of the last change, never modified, so that a
	// fanout walks it without the lock; nil when slots have changed since.
	snapshot []*Subscription

	// pending counts the queues the batch in hand waits for, plus one while
	// it is being handed out; waiter hears when it falls to zero.
	pending atomic.Int32
	waiter  Waiter
}

// newShard makes a shard that serves.
func (h *Hub) newShard(s *Stream, index uint32) *Shard {
	sh := h.bareShard(s, index)
	if s.owner.Queue != nil {
		sh.lane = s.owner.Queue.NewLane()
	}
	if s.opts.Durable {
		sh.durable, sh.gone = newDurable(sh), make(chan struct{})
	} else {
		sh.claimed = h.base(s.name, index)
	}
	sh.tail = sh.claimed
	sh.active.Store(true)
	return sh
}

// vacantShard stands for one that is not served here, and refuses everything.
func (h *Hub) vacantShard(s *Stream, index uint32, why *placed.NotServedError) *Shard {
	sh := h.bareShard(s, index)
	sh.vacant, sh.end = true, why
	if s.opts.Durable {
		sh.durable = newDurable(sh)
		sh.durable.started.Store(true)
		sh.durable.current.Store(&openedLog{refused: why})
		close(sh.durable.tried)
	}
	return sh
}

func (h *Hub) bareShard(s *Stream, index uint32) *Shard {
	life, die := context.WithCancelCause(context.Background())
	return &Shard{
		life:    life,
		die:     die,
		hub:     h,
		stream:  s,
		id:      h.shardIDs.Add(1),
		index:   index,
		account: s.owner.Account,
		ring:    ring{maxRecords: h.cfg.RingRecords, maxBytes: h.cfg.RingBytes},
	}
}

// ID is unique in this process and never used again.
func (sh *Shard) ID() uint64 { return sh.id }

// Stream is the stream the shard belongs to.
func (sh *Shard) Stream() *Stream { return sh.stream }

// Name is the full name of the shard's stream.
func (sh *Shard) Name() Name { return sh.stream.name }

// Index is the shard's number within its stream.
func (sh *Shard) Index() uint32 { return sh.index }

// UID is which creation of its name the shard's stream is, "" where nobody
// knows.
func (sh *Shard) UID() string { return sh.stream.opts.UID }

// Durable says that a log lies under the shard, so that its offsets outlive
// this process and may be shown to clients.
func (sh *Shard) Durable() bool { return sh.stream.opts.Durable }

// Active says that the shard is served. One that was removed, or is not served
// here any more, never becomes active again: the stream has another then
// ([Stream.Shard]).
func (sh *Shard) Active() bool { return sh.active.Load() }

// Lane is the shard's place in the publish queue.
func (sh *Shard) Lane() *schedule.Lane { return sh.lane }

// Account is the publish account of the shard's tenant.
func (sh *Shard) Account() *admission.Account { return sh.account }

// Bounds are the oldest offset held and the tail, which are equal when nothing
// is held. They are 0 while a durable shard is not open.
func (sh *Shard) Bounds() (oldest, tail uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.oldest(), sh.tail
}

// oldest is the offset of the first record that can be read; mu is held.
func (sh *Shard) oldest() uint64 {
	if d := sh.durable; d != nil {
		if o := d.current.Load(); o != nil && o.log != nil {
			return min(o.log.Base(), sh.tail)
		}
	}
	return sh.ring.oldest(sh.tail)
}

func (sh *Shard) finish(cause error) {
	sh.mu.Lock()
	sh.active.Store(false)
	sh.end = cause
	subs := sh.slots
	sh.slots, sh.snapshot = nil, nil
	sh.ring.clear()
	if sh.durable == nil {
		sh.hub.raiseFloor(sh.tail)
	}
	sh.mu.Unlock()
	sh.die(cause)
	for _, s := range subs {
		s.finish(cause)
	}
	if sh.durable != nil {
		sh.durable.turns.goOn() // who waits for the log waits in vain
	}
}

// Life ends when the shard serves no longer, with why as its cause.
func (sh *Shard) Life() context.Context { return sh.life }

// Err is why the shard serves no longer; nil while it does.
func (sh *Shard) Err() error {
	if sh.active.Load() {
		return nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.end
}
