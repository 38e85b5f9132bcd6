package client

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// soon is how much work may lie claimed and not begun, in time: more
	// would keep records from workers that are idle.
	soon = time.Second
	// maxSettling bounds the finished records that the broker has not
	// answered yet; at the bound nothing is polled.
	maxSettling = 8192
)

// A consumer is one [Client.Consume] under way.
type consumer struct {
	c       *Client
	g       *Group
	o       *consumeOptions
	handler Handler

	stop        context.CancelCauseFunc // lets no further poll begin
	answers     context.Context         // of the polls under way
	handlers    context.Context         // parent of the handlers' contexts
	endHandlers context.CancelCauseFunc
	settle      context.Context // of everything that settles and extends
	endSettle   context.CancelFunc

	pullers    sync.WaitGroup // and what starts them
	background sync.WaitGroup // flights and the extender

	mu       sync.Mutex
	shards   map[uint32]*consumedShard
	jobs     map[recordID]*job // from their arrival until settled
	queue    []*job            // not begun, in order; may hold some that are no longer queued
	queued   int
	running  int           // handlers
	reserved int           // records that polls under way may bring
	average  time.Duration // of handlers
	proven   int           // records handled without an error, up to what limit needs
	wary     int           // shards whose last poll brought records that were handed out before
	free     waitList      // pullers that wait for room
	due      jobList       // for extension
	period   time.Duration
	extended chan struct{} // one token: due has a first job

	unsent   []*job // finished, to be settled
	settling int    // those, and the ones in flights
	flights  int
	stopping bool          // no further handler begins
	draining bool          // idle is to be closed
	ended    bool          // nothing is settled any longer
	idle     chan struct{} // closed when draining and nothing runs or settles
}

// A consumedShard is one shard that a consumer polls.
type consumedShard struct {
	shard uint32
	jobs  int  // held or not yet settled
	wary  bool // its last poll brought records that were handed out before
}

// A recordID tells records of a stream apart.
type recordID struct {
	shard  uint32
	offset uint64
}

// A jobState is how far a job has come.
type jobState uint8

const (
	jobQueued jobState = iota
	jobRunning
	jobFinished // to be settled, or being settled
	jobGone
)

// A job is one claimed record. Its fields are guarded by the consumer's mutex.
type job struct {
	d     Delivery // with the newest claim
	shard *consumedShard
	state jobState

	arrived, ended time.Time
	cancel         context.CancelCauseFunc // of the handler's context
	lost           *ClaimLostError         // the claim is somebody else's

	// How it is to be settled.
	op    groupOp
	delay time.Duration

	// In the list of claims to extend.
	due        time.Time
	next, prev *job
	listed     bool
}

func newConsumer(ctx context.Context, g *Group, handler Handler, o *consumeOptions) *consumer {
	k := &consumer{
		c: g.c, g: g, o: o, handler: handler,
		shards:   make(map[uint32]*consumedShard),
		jobs:     make(map[recordID]*job),
		period:   o.visibility / 3,
		extended: make(chan struct{}, 1),
		idle:     make(chan struct{}),
	}
	k.free.mu = &k.mu
	k.handlers, k.endHandlers = context.WithCancelCause(context.WithoutCancel(ctx))
	k.settle, k.endSettle = context.WithCancel(k.c.ctx)
	return k
}

// limit is how many records may be claimed and not finished: what runs, and
// what handlers as fast as the ones before can begin soon.
//
// Every record that is claimed when a worker dies has lost an attempt, begun
// or not, and a worker that dies of one record must not take others to the
// dead letters with it. So the limit grows only with the records that were
// handled well, and none is claimed ahead as long as some come that were
// handed out before. mu is held.
func (k *consumer) limit() int {
	if k.wary > 0 {
		return k.o.concurrency
	}
	horizon := min(soon, k.o.visibility/4)
	ahead := int64(k.o.concurrency) * int64(horizon) / max(int64(k.average), 1)
	return k.o.concurrency + int(min(ahead, int64(k.proven)))
}

// look notes whether a poll brought records that were handed out before. mu is
// held.
func (k *consumer) look(sh *consumedShard, records []Delivery) {
	wary := slices.ContainsFunc(records, func(d Delivery) bool { return d.Attempts > 1 })
	if wary != sh.wary {
		sh.wary = wary
		if wary {
			k.wary++
		} else {
			k.wary--
		}
	}
}

// ask is how many records a poll may ask for now; 0 for none. It is not worth
// a poll to fill a small gap, unless a handler has nothing to do. mu is held.
func (k *consumer) ask() int {
	limit := k.limit()
	room := limit - k.queued - k.running - k.reserved
	if room <= 0 || k.settling >= maxSettling {
		return 0
	}
	n := min(room, k.o.batch)
	if k.queued > 0 && n < min(k.o.batch, (limit+1)/2) {
		return 0
	}
	return n
}

// roomMade wakes pullers if they can go on. mu is held.
func (k *consumer) roomMade() {
	if !k.free.empty() && (k.o.untilEmpty || k.ask() > 0) {
		k.free.wakeAll()
	}
	if k.draining && k.running == 0 && (k.settling == 0 || k.settle.Err() != nil) {
		select {
		case <-k.idle:
		default:
			close(k.idle)
		}
	}
}

// whenIdle is closed when nothing runs and all is settled.
func (k *consumer) whenIdle() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.draining = true
	k.roomMade()
	return k.idle
}

// arrive takes what a poll brought, which room was reserved for.
func (k *consumer) arrive(sh *consumedShard, reserved int, records []Delivery) {
	now := time.Now()
	fresh := make([]job, len(records))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reserved -= reserved
	k.look(sh, records)
	for i, d := range records {
		id := recordID{d.Shard, d.Offset}
		if j := k.jobs[id]; j != nil {
			k.again(j, d, now)
			continue
		}
		fresh[i] = job{d: d, shard: sh}
		k.enqueue(&fresh[i], now)
	}
	k.begin()
	k.roomMade()
}

// enqueue lets a job wait for a handler. mu is held.
func (k *consumer) enqueue(j *job, now time.Time) {
	j.arrived = now
	k.jobs[recordID{j.d.Shard, j.d.Offset}] = j
	j.shard.jobs++
	k.queue = append(k.queue, j)
	k.queued++
	k.schedule(j, now)
}

// again takes a record that this consumer has already: its claim lapsed, or
// the broker started again, or handed it back to the one who had it. It is not
// handled twice at a time; the claim is the new one. mu is held.
func (k *consumer) again(j *job, d Delivery, now time.Time) {
	j.d = d
	j.lost = nil
	if j.state != jobFinished {
		k.schedule(j, now)
	}
}

// gone forgets a job. mu is held.
func (k *consumer) gone(j *job) {
	k.due.remove(j)
	j.state = jobGone
	delete(k.jobs, recordID{j.d.Shard, j.d.Offset})
	j.shard.jobs--
}

// handBack settles what has not begun: others may have it at once.
func (k *consumer) handBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range k.queue {
		if j.state != jobQueued {
			continue
		}
		k.queued--
		k.finished(j, opNack, 0)
	}
	k.queue = nil
}

// A jobList is a list of jobs in the order of their due times.
type jobList struct{ first, last *job }

func (l *jobList) add(j *job) {
	j.listed, j.prev, j.next = true, l.last, nil
	if l.last != nil {
		l.last.next = j
	} else {
		l.first = j
	}
	l.last = j
}

func (l *jobList) remove(j *job) {
	if !j.listed {
		return
	}
	if j.prev != nil {
		j.prev.next = j.next
	} else {
		l.first = j.next
	}
	if j.next != nil {
		j.next.prev = j.prev
	} else {
		l.last = j.prev
	}
	j.listed, j.prev, j.next = false, nil, nil
}
