package session

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/wire"
)

// An ackLedger owns the answers a control stream owes for acked publishes:
// at most limit at a time (wire 9.5), in request order for a client that was
// granted the pipeline and in completion order for any other.
//
// It shares the lock of the stream's replies, so that settling a publish and
// appending its answer are one step and order holds.
type ackLedger struct {
	out     *replies
	ordered bool
	limit   int
	wait    time.Duration // an answer older than this is given as unknown
	clock   broker.Clock
	offer   wire.Offer
	ok      wire.PublishOK // reused

	queue []*pendingAck // outstanding, oldest first; a ring over head..tail
	head  int
	n     int
	free  []*pendingAck
	room  sync.Cond
	sweep func() bool // stops the timer that runs while anything is outstanding
	dead  bool
}

// A pendingAck is one answer owed. It is the completion the broker core
// settles; it is reused once answered.
type pendingAck struct {
	ledger    *ackLedger
	requestID uint64
	json      bool
	since     time.Time
	result    broker.Result
	settled   bool // the core is done with it
	answered  bool // its answer left, perhaps as unknown; free once settled
}

func newAckLedger(out *replies, ordered bool, limit int, wait time.Duration, clock broker.Clock, offer wire.Offer) *ackLedger {
	l := &ackLedger{out: out, ordered: ordered, limit: limit, wait: wait, clock: clock, offer: offer}
	l.room.L = &out.mu
	return l
}

// full says whether the next owe would wait.
func (l *ackLedger) full() bool {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.n >= l.limit
}

// owe opens an answer, waiting while the window is full: the broker stops
// reading the stream, and flow control slows the client (wire 9.5). It
// returns nil when the stream ended meanwhile. The caller has flushed its
// round, or the answers that would free the window could never leave.
func (l *ackLedger) owe(requestID uint64, json bool) *pendingAck {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	for l.n >= l.limit && !l.dead {
		l.room.Wait()
	}
	if l.dead {
		return nil
	}
	var p *pendingAck
	if k := len(l.free); k > 0 {
		p, l.free = l.free[k-1], l.free[:k-1]
	} else {
		p = &pendingAck{ledger: l}
	}
	*p = pendingAck{ledger: l, requestID: requestID, json: json}
	l.pushLocked(p)
	return p
}

func (l *ackLedger) pushLocked(p *pendingAck) {
	if l.n == len(l.queue) {
		grown := make([]*pendingAck, max(16, 2*len(l.queue)))
		for i := range l.n {
			grown[i] = l.queue[(l.head+i)%len(l.queue)]
		}
		l.queue, l.head = grown, 0
	}
	l.queue[(l.head+l.n)%len(l.queue)] = p
	l.n++
}

// Complete settles the publish: it implements [broker.Completion].
func (p *pendingAck) Complete(res broker.Result) {
	l := p.ledger
	l.out.mu.Lock()
	p.result = res
	p.settled = true
	if p.answered {
		l.free = append(l.free, p)
		l.out.mu.Unlock()
		return
	}
	l.advanceLocked(p)
	l.out.mu.Unlock()
	l.out.kick()
}

// advanceLocked answers what may be answered now that p is settled.
func (l *ackLedger) advanceLocked(p *pendingAck) {
	if !l.ordered {
		l.removeLocked(p)
		l.answerLocked(p)
		return
	}
	for l.n > 0 && l.queue[l.head].settled {
		l.answerLocked(l.popLocked())
	}
}

func (l *ackLedger) popLocked() *pendingAck {
	p := l.queue[l.head]
	l.queue[l.head] = nil
	l.head = (l.head + 1) % len(l.queue)
	l.n--
	return p
}

// removeLocked takes p out of the middle; completion order has few ahead.
func (l *ackLedger) removeLocked(p *pendingAck) {
	for i := range l.n {
		at := (l.head + i) % len(l.queue)
		if l.queue[at] != p {
			continue
		}
		for ; i > 0; i-- {
			prev := (l.head + i - 1) % len(l.queue)
			l.queue[at] = l.queue[prev]
			at = prev
		}
		l.popLocked()
		return
	}
}

// answerLocked writes p's answer and frees its place in the window. An
// overdue p is kept from reuse until the core settles it after all.
func (l *ackLedger) answerLocked(p *pendingAck) {
	p.answered = true
	l.out.setLocked(l.appendAnswer(l.out.pending, p))
	if p.settled {
		l.free = append(l.free, p)
	}
	l.room.Signal()
}

// left is called by the reader when a publish returned with its answer still
// owed: from now on the sweep looks after it.
func (l *ackLedger) left(p *pendingAck, now time.Time) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if p.settled || l.dead {
		return
	}
	p.since = now
	if l.sweep == nil {
		l.sweep = l.clock.AfterFunc(l.wait, l.sweepOverdue)
	}
}

// sweepOverdue answers publishes nobody settled in time with an unknown
// outcome: one timer a stream instead of one a publish (broker 6.2). Publishes
// age in request order, so order holds here too.
func (l *ackLedger) sweepOverdue() {
	now := l.clock.Now()
	l.out.mu.Lock()
	l.sweep = nil
	for l.n > 0 && !l.dead {
		p := l.queue[l.head]
		if !p.settled {
			if p.since.IsZero() {
				break // its publish call has not returned
			}
			if age := now.Sub(p.since); age < l.wait {
				l.sweep = l.clock.AfterFunc(l.wait-age, l.sweepOverdue)
				break
			}
			p.result = broker.Result{Err: errUnacknowledged}
		}
		l.answerLocked(l.popLocked())
	}
	l.out.mu.Unlock()
	l.out.kick()
}

// close wakes a reader that waits for room and stops the sweep.
func (l *ackLedger) close() {
	l.out.mu.Lock()
	l.dead = true
	if l.sweep != nil {
		l.sweep()
		l.sweep = nil
	}
	l.room.Broadcast()
	l.out.mu.Unlock()
}

// appendAnswer writes the answer to p in the encoding of its request and with
// the fields this client negotiated (wire 4.4, 7.3, 16.3).
func (l *ackLedger) appendAnswer(dst []byte, p *pendingAck) []byte {
	switch {
	case p.result.Err != nil && p.json:
		return wire.AppendMessage(dst, l.offer.PublishError(p.requestID, asRefusal(p.result.Err).Failure))
	case p.result.Err != nil:
		ack := l.offer.FailedAck(p.requestID, asRefusal(p.result.Err).Failure)
		return ack.Append(dst)
	case p.json:
		l.ok = wire.PublishOK{RequestID: p.requestID}
		if p.result.HasOffset {
			l.ok.Offset = l.offer.AckOffset(p.result.Offset)
		}
		return wire.AppendMessage(dst, &l.ok)
	}
	ack := wire.Ack{RequestID: p.requestID, HasOffset: p.result.HasOffset, Offset: p.result.Offset}
	l.offer.ShapeAck(&ack)
	return ack.Append(dst)
}

// settle waits until nothing is owed, the client is gone or ctx ends.
func (l *ackLedger) settle(ctx context.Context, gone <-chan struct{}) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.n == 0 {
		return
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-ctx.Done():
		case <-gone:
		case <-stop:
			return
		}
		l.close()
	}()
	for l.n > 0 && !l.dead {
		l.room.Wait()
	}
}
