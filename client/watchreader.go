package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/felixlog/felix/wire"
)

// A watchReader reads the changes of one shard of a cache, wherever it is
// served, and resumes when that is lost. One goroutine reads.
type watchReader struct {
	eventSource

	cache   *Cache
	o       *watchOptions
	shard   uint32
	sharded bool // the cache has several shards
	stats   *watchCounters

	// Where the reader stands: next is the offset of the next change, if
	// hasNext. While a state is delivered, next is where that leaves off.
	next    uint64
	hasNext bool
	state   stateDelivery
	pending []watched

	loss      loss
	fruitless int // resumes in a row that brought nothing
	openedAt  time.Time
}

// A stateDelivery is how far the delivery of a shard's current values is:
// those that Retained asked for, or those that come instead of changes no
// longer held. One that is interrupted begins anew, because nothing says in
// which order the values come.
type stateDelivery struct {
	underway bool
	counted  bool   // the broker told how many there are
	left     uint64 // if counted
	tail     uint64 // else they end with the first change from here on
	told     bool   // some were delivered
}

func newWatchReader(k *Cache, o *watchOptions, shard uint32, sharded bool, stats *watchCounters) *watchReader {
	r := &watchReader{
		eventSource: eventSource{c: k.c}, cache: k, o: o, shard: shard, sharded: sharded, stats: stats,
	}
	r.state.underway = o.retained
	if from, ok := o.from[shard]; ok {
		r.next, r.hasNext = from, true
	}
	return r
}

// position is where to watch from to miss nothing that was not delivered.
// While a state is delivered that is the very beginning, which the broker
// answers with all changes or with the state.
func (r *watchReader) position() uint64 {
	if r.state.underway {
		return 0
	}
	return r.next
}

// run reads until the shard ends, and tells how it ended.
func (r *watchReader) run(ctx context.Context, out chan<- watched) {
	for {
		item, err := r.read(ctx)
		item.shard, item.err = r.shard, err
		select {
		case out <- item:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// read waits for the next item.
func (r *watchReader) read(ctx context.Context) (watched, error) {
	for {
		if len(r.pending) > 0 {
			item := r.pending[0]
			r.pending = r.pending[1:]
			return item, nil
		}
		es, err := r.current()
		if err == nil && es == nil {
			err = r.resume(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return watched{}, err
		}
		h, payload, err := r.frame(ctx, es)
		if err == nil {
			err = r.take(es, h, payload)
		}
		if err != nil {
			if err := r.failed(ctx, err); err != nil {
				return watched{}, err
			}
		}
	}
}

// take handles one frame. The error is why the stream is over.
func (r *watchReader) take(es *eventStream, h wire.Header, payload []byte) error {
	if h.Flags != 0 {
		return &brokenStream{fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))}
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		return &brokenStream{err}
	}
	switch m := m.(type) {
	case *wire.CacheEvent:
		return r.accept(m)
	case *wire.CacheWatchLagged:
		return &laggedError{m.ResumeFrom}
	case *wire.ShardMoved:
		return &movedError{m}
	case *wire.Error:
		return refused("cache watch", es.addr, m.Failure())
	default:
		return &brokenStream{fmt.Errorf("unexpected %s on a stream of changes", m.MessageType())}
	}
}

// accept makes an item of a change, unless it was seen before.
func (r *watchReader) accept(m *wire.CacheEvent) error {
	if m.Offset == math.MaxUint64 {
		return &brokenStream{errors.New("change at the largest offset")}
	}
	if st := &r.state; st.underway && !st.counted && m.Offset >= st.tail {
		r.stateDelivered()
	}
	if !r.state.underway && r.hasNext && m.Offset < r.next {
		r.stats.duplicates.Add(1)
		return nil
	}
	r.fruitless = 0
	item := watched{change: r.change(m)}
	if st := &r.state; st.underway {
		st.told = true
		if st.left--; st.counted && st.left == 0 {
			item.last = true
			r.stateDelivered()
		}
	} else {
		r.next, r.hasNext = m.Offset+1, true
	}
	item.next = r.position()
	r.pending = append(r.pending, item)
	return nil
}

func (r *watchReader) change(m *wire.CacheEvent) Change {
	change := Change{Kind: Deleted, Key: string(m.Key), Offset: m.Offset, Shard: r.shard, Retained: r.state.underway}
	if value, put := m.Value.Get(); put {
		change.Kind = Put
		if change.Value = value; value == nil {
			change.Value = []byte{}
		}
	} else if m.Expired {
		change.Kind = Expired
	}
	if m.ExpiresAtMillis != 0 {
		change.ExpiresAt = time.UnixMilli(int64(min(m.ExpiresAtMillis, math.MaxInt64)))
	}
	return change
}

// stateDelivered notes that what follows are changes behind the state.
func (r *watchReader) stateDelivered() {
	r.next, r.hasNext = r.state.tail, true
	r.state = stateDelivery{}
}

// confirmed takes the broker's answer to the watch.
func (r *watchReader) confirmed(m *wire.CacheWatchStarted) {
	switch {
	case r.state.underway:
		if r.state.told {
			r.reset()
		}
		n := m.RetainedCount.Or(0)
		r.state = stateDelivery{underway: true, counted: true, left: n, tail: m.ResumeOffset}
		if n == 0 {
			r.stateDelivered()
			r.pending = append(r.pending, watched{next: r.next, last: true})
		}
	case m.Resnapshot:
		r.reset()
		r.state = stateDelivery{underway: true, tail: m.ResumeOffset, told: true}
	case !r.hasNext:
		r.next, r.hasNext = m.ResumeOffset, true
	}
}

// reset tells the watch that what it knows of the shard is void.
func (r *watchReader) reset() {
	r.stats.resets.Add(1)
	r.pending = append(r.pending, watched{change: Change{Kind: Reset, Shard: r.shard}})
}

// failed decides what the end of the current stream means: nil when the
// reader is to resume.
func (r *watchReader) failed(ctx context.Context, err error) error {
	if r.isClosed() {
		return ErrClosed
	}
	if r.interrupted(err) {
		return ctx.Err()
	}
	r.drop()
	if time.Since(r.openedAt) > steadyAfter {
		r.fruitless = 0
	}
	r.fruitless++
	r.loss = loss{err: err}
	var (
		broken  *brokenStream
		moved   *movedError
		lagged  *laggedError
		refusal *Error
	)
	switch {
	case errors.Is(err, io.EOF):
		return ErrEnded
	case errors.As(err, &broken):
		return lost("cache watch", "", RetryUnspecified, err)
	case errors.As(err, &moved):
		r.loss.moved = moved.m
		r.resumeAt(moved.m.ResumeFrom)
		r.stats.moves.Add(1)
	case errors.As(err, &lagged):
		r.resumeAt(wire.Some(lagged.from))
		r.stats.lagged.Add(1)
	case errors.As(err, &refusal):
		if refusal.Code == CodeUnauthenticated && r.c.cfg.renewable {
			r.stats.reauths.Add(1)
			break
		}
		if !refusal.Retryable() {
			return refusal
		}
		r.stats.reconnects.Add(1)
	case isLost(err):
		r.stats.reconnects.Add(1)
	default:
		return lost("cache watch", "", RetryUnspecified, err)
	}
	if r.fruitless > r.c.cfg.reconnect.Attempts {
		return r.lostFor(err)
	}
	return nil
}

// resumeAt moves the reader on to where the broker says the changes go on
// that it has not delivered. While the state is not delivered it is asked
// for again instead.
func (r *watchReader) resumeAt(from wire.Optional[uint64]) {
	if offset, ok := from.Get(); ok && !r.state.underway {
		r.next, r.hasNext = max(r.next, offset), true
	}
}

// resume watches again where the reader stands.
func (r *watchReader) resume(ctx context.Context) error {
	if r.fruitless > 1 {
		if err := r.c.sleep(ctx, r.c.cfg.reconnect.wait(r.fruitless-1)); err != nil {
			return err
		}
	}
	err := r.open(ctx)
	switch {
	case err == nil:
		r.c.cfg.logger.Info("watch resumed", "cache", r.cache.name, "shard", r.shard, "at", r.next, "after", r.loss.err)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r.isClosed():
		return ErrClosed
	}
	return r.lostFor(err)
}

func (r *watchReader) lostFor(err error) error {
	return &SubscriptionLostError{Shard: r.shard, Next: r.next, HasNext: r.hasNext, Err: err}
}
