package shardlog

import (
	"fmt"
	"math"
	"time"

	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/segment"
)

// Append claims the next offsets for a batch and copies it; it does not wait
// for the disk. done, which may be nil, hears of the outcome.
//
// With an error nothing was kept and done is not used: ErrBusy, ErrInvalid,
// *RefusedError, *ClosedError, or *SyncFailedError of a poisoned log. A batch
// an idempotent producer sent before is answered with Duplicate and the offset
// it has; done then hears when that is committed.
func (l *Log) Append(e *Entry, done Completion) (Appended, error) {
	return l.enqueue(claim{Entry: e, done: done})
}

// AppendAt is Append on the condition that the batch gets the offset expected;
// otherwise *OffsetMismatchError. A duplicate is answered as one first.
func (l *Log) AppendAt(expected uint64, e *Entry, done Completion) (Appended, error) {
	return l.enqueue(claim{Entry: e, done: done, conditional: true, expected: expected})
}

// Barrier has done hear, in turn, when all that is claimed now is committed or
// has failed. On a closed or poisoned log it hears the error at once, on the
// caller's goroutine.
func (l *Log) Barrier(done Completion) {
	l.mu.Lock()
	if err := l.refusal(); err != nil {
		l.mu.Unlock()
		done.Committed(Appended{}, err)
		return
	}
	r := l.gathering()
	r.items = append(r.items, item{done: done})
	l.startCommitter()
	l.mu.Unlock()
}

// AppendWait appends a batch and waits until it is committed. A caller that
// finds the log idle writes and syncs on its own goroutine.
func (l *Log) AppendWait(e *Entry) (Appended, error) {
	w := l.waiter()
	defer l.waiters.Put(w)
	app, err := l.enqueue(claim{Entry: e, done: w, wait: true})
	if err != nil {
		return app, err
	}
	<-w.woken
	return w.app, w.err
}

// Room returns a channel that is closed when an append that answered ErrBusy
// may be tried again.
func (l *Log) Room() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.gather != nil && len(l.gather.items) >= maxGathered
	if !l.frozen && !full && l.pending < l.opts.MaxPendingBytes {
		return closedChannel
	}
	if l.room == nil {
		l.room = make(chan struct{})
	}
	return l.room
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// waiter is the Completion of a caller that waits.
type waiter struct {
	woken chan struct{} // capacity 1: the committer never waits for the waiter
	app   Appended
	err   error
}

func (w *waiter) Committed(a Appended, err error) {
	w.app, w.err = a, err
	w.woken <- struct{}{}
}

func (l *Log) waiter() *waiter {
	if w, ok := l.waiters.Get().(*waiter); ok {
		return w
	}
	return &waiter{woken: make(chan struct{}, 1)}
}

// claim is one append on its way to its offsets.
type claim struct {
	*Entry
	done        Completion
	conditional bool
	expected    uint64
	wait        bool // the caller waits, and may do the work itself

	size    int
	bodyCRC uint32
	digest  uint64
	nanos   int64 // the wall clock's, which may be set
	at      time.Duration
}

func (l *Log) enqueue(c claim) (Appended, error) {
	if err := l.checkEntry(c.Entry); err != nil {
		return Appended{}, err
	}
	if admit := l.opts.Admit; admit != nil {
		if err := admit(); err != nil {
			return Appended{}, err
		}
	}
	c.size = segment.BatchHeaderSize + len(c.Publisher) + len(c.Block) + len(c.Extra)
	c.bodyCRC = segment.BodyCRC(c.Publisher, c.Block, c.Extra)
	if c.HasProducer {
		c.digest = producer.Digest(c.Block)
	}
	now := l.opts.Clock.Now()
	c.nanos, c.at = now.UnixNano(), l.since(now)

	l.mu.Lock()
	app, err := l.claim(&c)
	if err != nil {
		l.mu.Unlock()
		return Appended{}, err
	}
	inline := c.wait && !l.committing && l.io.TryLock()
	if !inline {
		l.startCommitter()
	}
	l.mu.Unlock()
	if inline {
		l.commitRound()
		l.io.Unlock()
		l.handOver()
	}
	return app, nil
}

func (l *Log) checkEntry(e *Entry) error {
	body := len(e.Publisher) + len(e.Block) + len(e.Extra)
	switch {
	case e.Count < 1 || int64(e.Count) > math.MaxUint32:
		return fmt.Errorf("%w: %d records", ErrInvalid, e.Count)
	case e.Kind > segment.Commit:
		return fmt.Errorf("%w: %v", ErrInvalid, e.Kind)
	case e.Kind != segment.Records && e.Count != 1:
		return fmt.Errorf("%w: %d records of kind %v", ErrInvalid, e.Count, e.Kind)
	case len(e.Publisher) > segment.MaxPublisher:
		return fmt.Errorf("%w: publisher of %d bytes", ErrInvalid, len(e.Publisher))
	case body > segment.MaxBody:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, body, segment.MaxBody)
	case int64(len(e.Block)) < 4+4*int64(e.Count):
		return fmt.Errorf("%w: block of %d bytes for %d records", ErrInvalid, len(e.Block), e.Count)
	case e.HasProducer && l.producers == nil:
		return fmt.Errorf("%w: the log keeps no producers", ErrInvalid)
	}
	return nil
}

// refusal is why the log takes nothing now. The caller holds mu.
func (l *Log) refusal() error {
	switch {
	case l.closed:
		return &ClosedError{Log: l.opts.Name}
	case l.failure != nil:
		return l.failure
	case l.frozen:
		return ErrBusy
	}
	return nil
}

// claim gives a batch its offsets and encodes it into the gathering round. The
// caller holds mu.
func (l *Log) claim(c *claim) (Appended, error) {
	if err := l.refusal(); err != nil {
		return Appended{}, err
	}
	if l.gather != nil && len(l.gather.items) >= maxGathered {
		return Appended{}, ErrBusy
	}
	if c.HasProducer {
		if app, known, err := l.checkProducer(c); known || err != nil {
			return app, err
		}
	}
	if c.conditional && c.expected != l.claimed {
		return Appended{}, &OffsetMismatchError{Expected: c.expected, Tail: l.claimed}
	}
	if l.pending > 0 && l.pending+int64(c.size) > l.opts.MaxPendingBytes {
		return Appended{}, ErrBusy
	}
	if l.claimed+uint64(c.Count) < l.claimed {
		return Appended{}, fmt.Errorf("%w: no offsets left after %d", ErrInvalid, l.claimed)
	}
	app := Appended{First: l.claimed, Count: c.Count, TimestampMicros: max(uint64(max(c.nanos, 1000))/1000, l.claimedMicros)}
	b := segment.Batch{
		Kind: c.Kind, Count: uint32(c.Count), BaseOffset: l.claimed, Generation: c.Generation,
		TimestampMicros: app.TimestampMicros, DurableThrough: l.durable.Load(), PrevCRC: l.claimedCRC,
		HasProducer: c.HasProducer, ProducerID: c.ProducerID, Sequence: c.Sequence,
		Block: c.Block, Extra: c.Extra,
	}
	r := l.gathering()
	r.buf = b.AppendPrepared(r.buf, c.Publisher, c.bodyCRC)
	r.items = append(r.items, item{done: c.done, app: app, size: c.size, crc: b.CRC, at: c.at})
	if c.HasProducer {
		l.producers.Record(c.ProducerID, c.Sequence, c.digest, app.First, uint32(c.Count))
	}
	l.claimed += uint64(c.Count)
	l.claimedCRC, l.claimedMicros = b.CRC, app.TimestampMicros
	l.pending += int64(c.size)
	return app, nil
}

// checkProducer answers what an idempotent producer repeats or may not send;
// known is false for its next batch.
func (l *Log) checkProducer(c *claim) (app Appended, known bool, err error) {
	v := l.producers.Check(c.ProducerID, c.Sequence, c.digest)
	switch v.Outcome {
	case producer.Next:
		return Appended{}, false, nil
	case producer.Duplicate:
		app = Appended{First: v.First, Count: c.Count, Duplicate: true}
		r := l.gathering()
		r.items = append(r.items, item{done: c.done, app: app, at: c.at})
		return app, true, nil
	}
	return Appended{}, true, &RefusedError{Verdict: v}
}

// gathering is the round that fills up. The caller holds mu.
func (l *Log) gathering() *round {
	if l.gather == nil {
		l.gather = l.opts.Descriptors.getRound()
	}
	return l.gather
}
