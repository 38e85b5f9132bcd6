package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/felixlog/felix/wire"
)

// A shardReader reads the records of one shard, wherever it is served, and
// resumes when that is lost. One goroutine reads.
type shardReader struct {
	eventSource

	o     *subscribeOptions
	name  routeName
	shard uint32
	stats *subscriptionCounters

	// Where the reader stands. next is the offset of the next record once
	// one is known; start is where it began otherwise.
	start   wire.Start
	next    uint64
	hasNext bool
	began   bool // a first subscribe succeeded
	durable bool // the stream has a log: the broker named a start offset

	startOffset, liveOffset wire.Optional[uint64]

	loss      loss // why there is no stream, and what to do
	fruitless int  // resumes in a row that brought nothing
	openedAt  time.Time
	publisher string
}

func newShardReader(c *Client, o *subscribeOptions, name routeName, shard uint32, start Start, stats *subscriptionCounters) *shardReader {
	r := &shardReader{eventSource: eventSource{c: c}, o: o, name: name, shard: shard, stats: stats, start: start.w}
	if r.start.Kind == wire.StartOffset {
		r.next, r.hasNext = r.start.Offset, true
	}
	return r
}

// read waits for the next batch and reads it into b. Its bytes are views
// that live until the next read, unless keep copies them first.
//
// An end of ctx is no end of the reader: it can be read again. Every other
// error is final.
func (r *shardReader) read(ctx context.Context, b *Batch, keep func([]byte) []byte) error {
	for {
		es, err := r.stream(ctx)
		if err != nil {
			return err
		}
		h, payload, err := r.frame(ctx, es)
		if err == nil {
			if keep != nil && h.Flags != 0 {
				payload = keep(payload)
			}
			var filled bool
			filled, err = r.take(es, h, payload, b)
			if filled && err == nil {
				r.fruitless = 0
				return nil
			}
		}
		if err == nil {
			continue
		}
		if err := r.failed(ctx, err); err != nil {
			return err
		}
	}
}

// stream gives the current event stream, resuming if there is none.
func (r *shardReader) stream(ctx context.Context) (*eventStream, error) {
	es, err := r.current()
	if err != nil || es != nil {
		return es, err
	}
	if err := r.resume(ctx); err != nil {
		return nil, err
	}
	return r.stream(ctx)
}

// take handles one frame: it fills b, or notes an end that the broker
// announced. The error is why the stream is over.
func (r *shardReader) take(es *eventStream, h wire.Header, payload []byte, b *Batch) (filled bool, err error) {
	switch h.Flags.Kind() {
	case wire.FrameEvents:
		var e wire.EventBatch
		if err := wire.ParseEventBatch(h.Flags, payload, &e); err != nil {
			return false, &brokenStream{err}
		}
		if !e.Shared && e.SubscriptionID != es.id {
			return false, &brokenStream{fmt.Errorf("event batch of subscription %d on the stream of %d", e.SubscriptionID, es.id)}
		}
		return r.accept(e, b)
	case wire.FrameJSON:
		m, err := wire.ParseMessage(payload)
		if err != nil {
			return false, &brokenStream{err}
		}
		return r.message(es, m, b)
	default:
		return false, &brokenStream{fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))}
	}
}

// message handles a JSON frame: events in their first form, or the reason
// why the stream ends.
func (r *shardReader) message(es *eventStream, m wire.Message, b *Batch) (filled bool, err error) {
	switch m := m.(type) {
	case *wire.JSONEvent:
		e := wire.EventBatch{Shared: true, Block: wire.AppendBlock(nil, m.Payload)}
		e.BaseOffset, e.HasOffsets = m.Offset.Get()
		return r.accept(e, b)
	case *wire.JSONEventBatch:
		e := wire.EventBatch{Shared: true, Block: m.Payloads}
		e.BaseOffset, e.HasOffsets = m.BaseOffset.Get()
		return r.accept(e, b)
	case *wire.ShardMoved:
		return false, &movedError{m}
	case *wire.SubscriptionLagged:
		return false, &laggedError{m.ResumeFrom}
	case *wire.StreamDeleted:
		return false, ErrDeleted
	case *wire.Error:
		return false, refused("subscription", es.addr, m.Failure())
	default:
		return false, &brokenStream{fmt.Errorf("unexpected %s on an event stream", m.MessageType())}
	}
}

// accept makes a batch of e: where offsets are known, what was seen before
// is left out and what is missing is counted.
func (r *shardReader) accept(e wire.EventBatch, b *Batch) (filled bool, err error) {
	n := e.Count()
	if n == 0 {
		return false, nil
	}
	*b = Batch{
		Shard: r.shard, BaseOffset: e.BaseOffset, HasOffset: e.HasOffsets,
		SkippedBefore: e.SkippedBefore, Publisher: r.intern(e.Publisher), events: e,
	}
	if !e.HasOffsets {
		return true, nil
	}
	if e.BaseOffset > math.MaxUint64-uint64(n) {
		return false, &brokenStream{errors.New("event batch with offsets past the largest")}
	}
	end := e.BaseOffset + uint64(n)
	if r.hasNext {
		switch {
		case end <= r.next:
			r.stats.duplicates.Add(uint64(n))
			return false, nil
		case e.BaseOffset < r.next:
			seen := int(r.next - e.BaseOffset)
			r.stats.duplicates.Add(uint64(seen))
			b.drop(seen)
		default:
			missing := e.BaseOffset - r.next
			b.Gap = missing - min(missing, e.SkippedBefore)
		}
	}
	r.next, r.hasNext = end, true
	return true, nil
}

func (r *shardReader) intern(publisher []byte) string {
	if r.publisher != string(publisher) {
		r.publisher = string(publisher)
	}
	return r.publisher
}

// live says that b is not history, as far as can be told: only such batches
// may be dropped.
func (r *shardReader) live(b *Batch) bool {
	if !b.events.Shared {
		return false // the form in which history is replayed (wire 4.5)
	}
	live, known := r.liveOffset.Get()
	return !known || !b.HasOffset || b.BaseOffset >= live
}
