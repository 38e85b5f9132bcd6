package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/broker"
)

// A ledger owns the answers a control stream owes for requests whose work is
// not done when the next frame is read. A stream has two: one for acked
// publishes, with the client's window (wire 9.5), in request order for a
// client that was granted the pipeline and in completion order for any other;
// and one for the requests that are answered in request order whatever
// happens (wire 8.1), because their refusal names no request.
//
// A ledger shares the lock of the stream's replies, so that settling a request
// and appending its answer are one step and order holds.
type ledger struct {
	out     *replies
	ordered bool
	limit   int           // most answers outstanding
	wait    time.Duration // an answer older than this is given as unknown
	clock   broker.Clock
	answers *answers

	outstanding atomic.Int32 // n, for the reader: only it adds
	queue       []*owed      // outstanding, oldest first; a ring
	head        int
	n           int
	free        []*owed
	held        int            // bytes that outstanding answers hold
	keys        map[uint64]int // writes not settled, by the hash of their key
	room        sync.Cond      // something was settled or answered, or the ledger is dead
	sweep       func() bool    // stops the timer that runs while anything is outstanding
	dead        bool
}

// maxHeld bounds the bytes that answers hold while they wait for their turn;
// past it the stream is not read on. A single answer may be larger.
const maxHeld = 4 << 20

func newLedger(out *replies, ordered bool, limit int, wait time.Duration, clock broker.Clock, a *answers) *ledger {
	l := &ledger{out: out, ordered: ordered, limit: limit, wait: wait, clock: clock, answers: a}
	l.room.L = &out.mu
	return l
}

func (l *ledger) fullLocked() bool { return l.n >= l.limit || l.held > maxHeld }

// idle says that nothing is owed, to the reader, who alone could change that.
func (l *ledger) idle() bool { return l == nil || l.outstanding.Load() == 0 }

// tryOwe opens an answer, or returns nil when the window is full.
func (l *ledger) tryOwe(f form, requestID uint64, now time.Time) *owed {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.fullLocked() || l.dead {
		return nil
	}
	return l.oweLocked(f, requestID, now)
}

// owe opens an answer, waiting while the window is full: the broker stops
// reading the stream, and flow control slows the client (wire 9.5). It
// returns nil when the stream ended meanwhile. The caller has flushed its
// round, or the answers that would free the window could never leave.
func (l *ledger) owe(f form, requestID uint64, now time.Time) *owed {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	for l.fullLocked() && !l.dead {
		l.room.Wait()
	}
	if l.dead {
		return nil
	}
	return l.oweLocked(f, requestID, now)
}

func (l *ledger) oweLocked(f form, requestID uint64, now time.Time) *owed {
	var p *owed
	if k := len(l.free); k > 0 {
		p, l.free = l.free[k-1], l.free[:k-1]
		p.reset()
	} else {
		p = &owed{ledger: l}
	}
	p.form, p.requestID, p.started = f, requestID, now
	l.pushLocked(p)
	return p
}

func (l *ledger) pushLocked(p *owed) {
	if l.n == len(l.queue) {
		grown := make([]*owed, max(16, 2*len(l.queue)))
		for i := range l.n {
			grown[i] = l.queue[(l.head+i)%len(l.queue)]
		}
		l.queue, l.head = grown, 0
	}
	l.queue[(l.head+l.n)%len(l.queue)] = p
	l.n++
	l.outstanding.Store(int32(l.n))
	l.out.owed++
	l.answers.owed.Add(1)
}

// settleLocked gives p its outcome, which the caller has filled in, and
// answers what may be answered now.
func (l *ledger) settleLocked(p *owed) {
	p.settled = true
	l.leaveKeyLocked(p)
	if p.answered { // overdue, and given as unknown
		l.free = append(l.free, p)
		return
	}
	if !l.ordered {
		l.removeLocked(p)
		l.answerLocked(p)
		return
	}
	for l.n > 0 && l.queue[l.head].settled {
		l.answerLocked(l.popLocked())
	}
	l.room.Signal()
}

func (l *ledger) popLocked() *owed {
	p := l.queue[l.head]
	l.queue[l.head] = nil
	l.head = (l.head + 1) % len(l.queue)
	l.n--
	l.outstanding.Store(int32(l.n))
	l.out.owed--
	l.answers.owed.Add(-1)
	return p
}

// removeLocked takes p out of the middle; completion order has few ahead.
func (l *ledger) removeLocked(p *owed) {
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
func (l *ledger) answerLocked(p *owed) {
	p.answered = true
	l.out.setLocked(l.answers.append(l.out.pending, p))
	l.held -= p.held
	p.held = 0
	if p.settled {
		l.free = append(l.free, p)
	}
	l.room.Signal()
}

// left is called when a request was handed over with its answer still owed:
// from now on the sweep looks after it.
func (l *ledger) left(p *owed, now time.Time) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if p.settled || p.answered || l.dead {
		return
	}
	p.since = now
	if l.sweep == nil {
		l.sweep = l.clock.AfterFunc(l.wait, l.sweepOverdue)
	}
}

// sweepOverdue answers requests nobody settled in time with an unknown
// outcome: one timer a stream instead of one a request (broker 6.2). Requests
// age in their order, so order holds here too.
func (l *ledger) sweepOverdue() {
	now := l.clock.Now()
	l.out.mu.Lock()
	l.sweep = nil
	for l.n > 0 && !l.dead {
		p := l.queue[l.head]
		if !p.settled {
			if p.since.IsZero() {
				break // it has not been handed over
			}
			if age := now.Sub(p.since); age < l.wait {
				l.sweep = l.clock.AfterFunc(l.wait-age, l.sweepOverdue)
				break
			}
			p.err = p.form.overdue()
		}
		l.answerLocked(l.popLocked())
	}
	l.out.mu.Unlock()
	l.out.kick()
}

// close wakes a reader that waits for room and stops the sweep.
func (l *ledger) close() {
	l.out.mu.Lock()
	l.dead = true
	if l.sweep != nil {
		l.sweep()
		l.sweep = nil
	}
	l.room.Broadcast()
	l.out.mu.Unlock()
}

// settle waits until nothing is owed, the client is gone or ctx ends.
func (l *ledger) settle(ctx context.Context, gone <-chan struct{}) {
	l.waitFor(ctx, gone, func() bool { return l.n == 0 })
}

// waitFor waits for done, which is asked with the lock held. The ledger is
// closed when ctx ends or the client is gone.
func (l *ledger) waitFor(ctx context.Context, gone <-chan struct{}, done func() bool) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if done() || l.dead {
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
	for !done() && !l.dead {
		l.room.Wait()
	}
}

// enterKey notes that p writes a key, so that a read of the key on the same
// stream can wait for it.
func (l *ledger) enterKey(p *owed, hash uint64) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.keys == nil {
		l.keys = make(map[uint64]int)
	}
	l.keys[hash]++
	p.key, p.hasKey = hash, true
}

func (l *ledger) leaveKeyLocked(p *owed) {
	if !p.hasKey {
		return
	}
	p.hasKey = false
	if l.keys[p.key]--; l.keys[p.key] == 0 {
		delete(l.keys, p.key)
	}
	l.room.Signal()
}

// writes says whether a write of the key is under way.
func (l *ledger) writes(hash uint64) bool {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.keys[hash] > 0
}
