package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// A Subscription delivers the records of a stream, in the order of each
// shard. One goroutine reads it; Close, Stats and Positions may be called
// from others.
//
// How far the broker may run ahead of a slow reader is bounded by flow
// control: without [Buffer], the event stream of a single shard is read only
// as records are taken. Beyond the QUIC window and the broker's own queue
// for this subscription, the broker drops records or ends the subscription,
// whichever its policy is. The first shows in [Event.Gap], the second is
// resumed where the stream has a log.
//
// A lost connection, a moved shard, or an expired token (with
// [WithTokenProvider]) is resumed at the next offset without a sign but in
// [Subscription.Stats]. What cannot be resumed without an unknown loss ends
// the subscription with a [*SubscriptionLostError] or [*LaggedError].
type Subscription struct {
	c       *Client
	readers []*shardReader
	queue   *batchQueue // nil when records are read directly
	cancel  context.CancelFunc
	stats   subscriptionCounters

	// Of the reading goroutine.
	batch  Batch   // what NextBatch gave, when read directly
	taken  *queued // what it came in, when read from the queue
	events []Event // records of the batch that Next is working through
	at     int     // the next of them
	open   int     // shards that have not ended
	ended  error   // final

	mu        sync.Mutex
	positions map[uint32]uint64
}

// Subscribe starts a subscription. It returns once the broker has confirmed
// it: records published afterwards are delivered.
//
// Start offsets that a broker cannot serve are a [*CursorError].
func (c *Client) Subscribe(ctx context.Context, stream string, opts ...SubscribeOption) (*Subscription, error) {
	o := subscribeOptions{buffer: c.cfg.subBuffer, bufferSet: c.cfg.subBuffer > 0, policy: c.cfg.subPolicy}
	for _, opt := range opts {
		o = opt.applySubscribe(o)
	}
	rt, err := c.route(o.namespace, stream)
	if err != nil {
		return nil, err
	}
	if o.bufferSet && o.buffer < 1 {
		return nil, errors.New("subscribe: a buffer needs room for one batch at least")
	}
	s := &Subscription{c: c, positions: make(map[uint32]uint64)}
	name := routeName{rt.namespace, rt.stream}
	shards := []uint32{o.shard}
	if o.allShards {
		if shards, err = c.shardsToRead(ctx, name, o.resume); err != nil {
			return nil, err
		}
	}
	for _, shard := range shards {
		start := o.start
		if at, ok := o.resume[shard]; ok {
			start = Offset(at)
		}
		s.readers = append(s.readers, newShardReader(c, &o, name, shard, start, &s.stats))
	}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, c.closedOr(err)
	}
	s.open = len(s.readers)
	for _, r := range s.readers {
		if r.hasNext {
			s.positions[r.shard] = r.next
		}
	}
	s.pump(&o)
	return s, nil
}

// start subscribes to every shard, some at a time.
func (s *Subscription) start(ctx context.Context) error {
	const together = 16
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	slots := make(chan struct{}, together)
	for _, r := range s.readers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := r.subscribe(ctx, r.start)
			if err == nil {
				return
			}
			mu.Lock()
			if first == nil {
				first = err
			}
			mu.Unlock()
			cancel()
		})
	}
	wg.Wait()
	return first
}

// NextBatch waits for the next batch. The batch is valid until the next call
// of NextBatch, Next or Close; nothing is allocated for it. Between Next and
// NextBatch no record is lost: NextBatch gives what Next has not given yet.
//
// The end of ctx leaves the subscription intact. [ErrEnded] says that the
// broker ended it cleanly, [ErrDeleted] that its stream was deleted, [ErrClosed]
// that Close was called. A subscription
// to several shards reports a lost shard once and goes on with the others;
// every other error is final.
func (s *Subscription) NextBatch(ctx context.Context) (*Batch, error) {
	b, err := s.nextBatch(ctx)
	if err == nil {
		s.delivered(b, b.Len())
	}
	return b, err
}

// nextBatch is NextBatch without the bookkeeping of what was delivered.
func (s *Subscription) nextBatch(ctx context.Context) (*Batch, error) {
	if s.at < len(s.events) {
		b := s.current()
		b.drop(s.at)
		s.events, s.at = s.events[:0], 0
		return b, nil
	}
	if s.ended != nil {
		return nil, s.ended
	}
	b, err := s.receive(ctx)
	if err == nil {
		s.stats.batches.Add(1)
		s.stats.lost.Add(b.Gap)
		return b, nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	if s.queue == nil {
		s.ended = err
		return nil, err
	}
	return nil, s.shardEnded(err)
}

// receive waits for a batch from the one shard, or from the queue of all.
func (s *Subscription) receive(ctx context.Context) (*Batch, error) {
	if s.queue == nil {
		s.batch = Batch{}
		return &s.batch, s.readers[0].read(ctx, &s.batch, nil)
	}
	s.queue.recycle(s.taken)
	s.taken = nil
	item, err := s.queue.take(ctx)
	if err != nil {
		return nil, err
	}
	s.taken = item
	return &item.batch, item.err
}

// current is the batch given last.
func (s *Subscription) current() *Batch {
	if s.queue == nil {
		return &s.batch
	}
	return &s.taken.batch
}

// shardEnded handles the end of one shard's reader behind the queue.
func (s *Subscription) shardEnded(err error) error {
	if errors.Is(err, ErrClosed) {
		s.ended = ErrClosed
		return err
	}
	if errors.Is(err, ErrDeleted) {
		s.ended = ErrDeleted // of all its shards
		return err
	}
	s.open--
	switch {
	case len(s.readers) == 1:
		s.ended = err
	case s.open == 0:
		s.ended = ErrEnded
	}
	if len(s.readers) > 1 && errors.Is(err, ErrEnded) {
		shard := s.taken.batch.Shard
		return &SubscriptionLostError{Shard: shard, Err: err}
	}
	return err
}

// Next waits for the next record. Its payload is the caller's to keep. The
// errors are those of [Subscription.NextBatch].
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if s.at == len(s.events) {
		b, err := s.nextBatch(ctx)
		if err != nil {
			return Event{}, err
		}
		s.events, s.at = b.appendEvents(s.events[:0]), 0
	}
	ev := s.events[s.at]
	s.at++
	s.stats.records.Add(1)
	s.stats.bytes.Add(uint64(len(ev.Payload)))
	if ev.HasOffset {
		s.advance(ev.Shard, ev.Offset+1)
	}
	return ev, nil
}

// Events ranges over the records. The loop ends by itself when the broker
// ended the subscription or Close was called; any other error is yielded
// with a zero Event, and is the last unless it concerns one shard of
// several.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ev, err := s.Next(ctx)
			if err == ErrEnded || err == ErrClosed {
				return
			}
			if !yield(ev, err) || err != nil && (err == s.ended || ctx.Err() != nil) {
				return
			}
		}
	}
}

// delivered counts the whole rest of b as delivered.
func (s *Subscription) delivered(b *Batch, n int) {
	s.stats.records.Add(uint64(n))
	s.stats.bytes.Add(uint64(b.PayloadBytes()))
	if b.HasOffset {
		s.advance(b.Shard, b.BaseOffset+uint64(n))
	}
}

func (s *Subscription) advance(shard uint32, next uint64) {
	s.mu.Lock()
	s.positions[shard] = next
	s.mu.Unlock()
}

// Positions gives, for each shard where it is known, the offset of the
// record that comes next: what [ResumeAt] takes in another process or at
// another time. A record counts as delivered when Next or NextBatch has
// given it.
func (s *Subscription) Positions() map[uint32]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.positions)
}

// Shards is the number of shards the subscription reads.
func (s *Subscription) Shards() int { return len(s.readers) }

// StartOffset is the offset the subscription to a shard began at, where the
// broker said so: on streams with a log.
func (s *Subscription) StartOffset(shard uint32) (offset uint64, ok bool) {
	if r := s.reader(shard); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.startOffset.Get()
	}
	return 0, false
}

// LiveOffset is the first offset that was no history when the shard was last
// subscribed to, where the broker said so.
func (s *Subscription) LiveOffset(shard uint32) (offset uint64, ok bool) {
	if r := s.reader(shard); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.liveOffset.Get()
	}
	return 0, false
}

func (s *Subscription) reader(shard uint32) *shardReader {
	for _, r := range s.readers {
		if r.shard == shard {
			return r
		}
	}
	return nil
}

// Close ends the subscription and unblocks its reader. It may be called more
// than once.
func (s *Subscription) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	for _, r := range s.readers {
		r.close()
	}
	return nil
}

// SubscriptionStats are counters since a subscription began.
type SubscriptionStats struct {
	Records, Bytes, Batches uint64 // delivered; bytes of payload
	Lost                    uint64 // records: the sum of all gaps
	Dropped                 uint64 // records dropped by the subscription's buffer
	Duplicates              uint64 // records delivered before, left out
	Reconnects              uint64 // resumed after a lost connection or stream
	Moves                   uint64 // followed the shard to another broker
	Lagged                  uint64 // resumed after the broker gave up on a slow reader
	Reauths                 uint64 // resumed after the token expired
	Losses                  uint64 // jumps to the tail, see ContinueAtLatest
}

type subscriptionCounters struct {
	records, bytes, batches, lost, dropped, duplicates atomic.Uint64
	reconnects, moves, lagged, reauths, losses         atomic.Uint64
}

// Stats reads the counters.
func (s *Subscription) Stats() SubscriptionStats {
	c := &s.stats
	return SubscriptionStats{
		Records: c.records.Load(), Bytes: c.bytes.Load(), Batches: c.batches.Load(),
		Lost: c.lost.Load(), Dropped: c.dropped.Load(), Duplicates: c.duplicates.Load(),
		Reconnects: c.reconnects.Load(), Moves: c.moves.Load(), Lagged: c.lagged.Load(),
		Reauths: c.reauths.Load(), Losses: c.losses.Load(),
	}
}
