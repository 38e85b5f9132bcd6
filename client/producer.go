package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

// DefaultDeliveryTimeout is how long a [Producer] tries to deliver a batch,
// from its first failure on.
const DefaultDeliveryTimeout = time.Minute

// A Producer sends batches to one stream, each of which is stored exactly
// once (wire 9.6). It numbers the batches of each shard; when an answer is
// lost it sends the batch again under the same number, over another
// connection or to another broker where that is needed, and a broker that
// has the batch already answers with the offset it got the first time. On a
// stream with a log that holds over restarts of the broker; one in memory
// forgets with it.
//
// At most 64 batches are under way to one shard; sends wait at the bound.
// Batches that one goroutine sends to one shard keep their order, without
// holes: a batch is stored only behind those before it.
//
// A call whose context ends gives up waiting and nothing else: a batch that
// was handed over is still delivered, and one that was not has no number.
// What stops a producer is a batch that it cannot deliver: refused for good,
// or not delivered within [WithDeliveryTimeout]. That batch fails with its
// own error, those behind it fail too, and every later call is a
// [*ProducerError]. Whether the failed batch was stored is what its error
// says ([IsOutcomeUnknown]); a new producer carries on from there.
//
// A Producer is safe for concurrent use.
type Producer struct {
	c        *Client
	route    *route
	id       uint64
	patience time.Duration

	mu          sync.Mutex
	changed     waitList
	shards      map[uint32]*producerShard
	blind       bool // a keyed batch went out while the stream's shards were unknown
	outstanding int
	firstErr    error // since the last Flush
	stopped     error // why it takes no more batches: a *ProducerError or ErrClosed
}

// A ProducerOption configures a [Producer].
type ProducerOption interface {
	applyProducer(producerOptions) producerOptions
}

type producerOptions struct {
	namespace string
	patience  time.Duration
}

func (n NamespaceOption) applyProducer(o producerOptions) producerOptions {
	o.namespace = string(n)
	return o
}

type deliveryTimeout time.Duration

func (d deliveryTimeout) applyProducer(o producerOptions) producerOptions {
	o.patience = time.Duration(d)
	return o
}

// WithDeliveryTimeout bounds how long a producer tries to deliver a batch,
// counted from its first failure. The default is [DefaultDeliveryTimeout].
func WithDeliveryTimeout(d time.Duration) ProducerOption { return deliveryTimeout(d) }

// NewProducer asks the broker for a producer's identity and gives a producer
// for a stream. It needs a broker with idempotent producers
// ([ErrUnsupported]).
func (c *Client) NewProducer(ctx context.Context, stream string, opts ...ProducerOption) (*Producer, error) {
	o := producerOptions{patience: DefaultDeliveryTimeout}
	for _, opt := range opts {
		o = opt.applyProducer(o)
	}
	if o.patience < 0 {
		return nil, errors.New("producer: a negative delivery timeout")
	}
	rt, err := c.route(o.namespace, stream)
	if err != nil {
		return nil, err
	}
	p := &Producer{c: c, route: rt, patience: o.patience, shards: make(map[uint32]*producerShard)}
	p.changed.mu = &p.mu
	err = c.retry(ctx, true, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		answer, err := ask[*wire.ProducerInitOK](ctx, b, "producer init", wire.FeatureIdempotentProducer, "IDEMPOTENT_PRODUCER",
			&wire.ProducerInit{RequestID: c.ids.Add(1)})
		if err == nil {
			p.id = answer.ProducerID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ID is the producer's identity, chosen by the broker.
func (p *Producer) ID() uint64 { return p.id }

// Err says why the producer takes no more batches; nil as long as it does.
func (p *Producer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// Publish sends one batch without a key and waits for its answer. The
// records get consecutive offsets from [Ack.Offset] on.
//
// When ctx ends first the error is [ErrOutcomeUnknown]; the batch is
// delivered all the same, and [Producer.Flush] tells if not.
func (p *Producer) Publish(ctx context.Context, payloads ...[]byte) (Ack, error) {
	return p.publish(ctx, nil, false, payloads)
}

// PublishKeyed is [Producer.Publish] with a key, which chooses the shard.
func (p *Producer) PublishKeyed(ctx context.Context, key []byte, payloads ...[]byte) (Ack, error) {
	return p.publish(ctx, key, true, payloads)
}

func (p *Producer) publish(ctx context.Context, key []byte, keyed bool, payloads [][]byte) (Ack, error) {
	wait := p.c.requests.getAnswer()
	if err := p.send(ctx, key, keyed, payloads, func(r *request) { r.wait = wait }); err != nil {
		p.c.requests.putAnswer(wait)
		return Ack{}, err
	}
	select {
	case <-wait.ready:
		ack, err := wait.ack, wait.err
		p.c.requests.putAnswer(wait)
		return ack, err
	case <-ctx.Done():
		return Ack{}, ctxError("publish", ctx, RetryUnknown)
	}
}

// Send hands over one batch without a key and returns once it is queued. The
// payloads may be reused at once. An error says that the batch was not sent
// and has no number.
func (p *Producer) Send(ctx context.Context, payloads ...[]byte) (*Pending, error) {
	return p.sendPending(ctx, nil, false, payloads)
}

// SendKeyed is [Producer.Send] with a key, which chooses the shard.
func (p *Producer) SendKeyed(ctx context.Context, key []byte, payloads ...[]byte) (*Pending, error) {
	return p.sendPending(ctx, key, true, payloads)
}

func (p *Producer) sendPending(ctx context.Context, key []byte, keyed bool, payloads [][]byte) (*Pending, error) {
	pending := new(Pending)
	if err := p.send(ctx, key, keyed, payloads, func(r *request) { r.pending = pending }); err != nil {
		return nil, err
	}
	return pending, nil
}

// SendFunc is [Producer.Send] with a callback instead of a [Pending]. The
// callback is called once, unless SendFunc returns an error. It runs on the
// goroutine that reads the answers: it must not block, nor call the client.
func (p *Producer) SendFunc(ctx context.Context, done func(Ack, error), payloads ...[]byte) error {
	return p.send(ctx, nil, false, payloads, func(r *request) { r.done = done })
}

// SendKeyedFunc is [Producer.SendFunc] with a key, which chooses the shard.
func (p *Producer) SendKeyedFunc(ctx context.Context, key []byte, done func(Ack, error), payloads ...[]byte) error {
	return p.send(ctx, key, true, payloads, func(r *request) { r.done = done })
}

// send hands a batch over. tell says whom to tell of its answer.
func (p *Producer) send(ctx context.Context, key []byte, keyed bool, payloads [][]byte, tell func(*request)) error {
	if err := checkBatch(payloads, key, keyed); err != nil {
		return err
	}
	s, err := p.shard(ctx, key, keyed)
	if err != nil {
		return err
	}
	if err := p.begin(); err != nil {
		return err
	}
	r := p.c.requests.get()
	err = s.lane.encode(r, key, keyed, AckPerBatch, payloads)
	if err != nil {
		err = &Error{Op: "publish", Code: CodeInvalidRequest, Retry: RetryNever, Err: err}
	} else {
		size := len(r.frame)
		if err = p.c.inflight.acquire(ctx, size); err == nil {
			tell(r)
			if err = s.send(ctx, r); err == nil {
				return nil
			}
			p.c.inflight.release(size)
		}
	}
	p.c.requests.put(r)
	p.settled(nil)
	return p.c.unsent(ctx, err)
}

// shard gives what numbers the batches with this key.
func (p *Producer) shard(ctx context.Context, key []byte, keyed bool) (*producerShard, error) {
	shard, err := p.route.shardOf(ctx, key, keyed)
	if err != nil {
		return nil, err
	}
	known, shards := p.route.knownShards()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case keyed && !known:
		p.blind = true
	case keyed && shards > 1 && p.blind && p.stopped == nil:
		// Those batches were numbered as one shard's, whichever the broker
		// put them in.
		p.stopped = &ProducerError{Err: errors.New("the stream turned out to have several shards after the first batches were sent")}
	}
	s := p.shards[shard]
	if s == nil {
		s = newProducerShard(p, shard)
		p.shards[shard] = s
	}
	return s, nil
}

// begin counts one more batch under way.
func (p *Producer) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.c.ctx.Err() != nil:
		return ErrClosed
	case p.stopped != nil:
		return p.stopped
	}
	p.outstanding++
	return nil
}

// settled counts one batch less.
func (p *Producer) settled(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outstanding--
	if err != nil && p.firstErr == nil {
		p.firstErr = err
	}
	if p.outstanding == 0 {
		p.changed.wakeAll()
	}
}

// stop makes a batch that failed the producer's last.
func (p *Producer) stop(err error) {
	p.mu.Lock()
	if _, stopped := p.stopped.(*ProducerError); !stopped {
		p.stopped = &ProducerError{Err: err}
	}
	if p.firstErr == nil {
		p.firstErr = err // before those of the batches behind it
	}
	p.mu.Unlock()
}

// failed says that a batch failed, so that those behind it must not be
// stored.
func (p *Producer) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, failed := p.stopped.(*ProducerError)
	return failed
}

// Flush waits until everything sent before was answered, and returns the
// first failure since the last Flush.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.outstanding > 0 {
		if err := p.changed.wait(ctx); err != nil {
			return err
		}
	}
	err := p.firstErr
	p.firstErr = nil
	return err
}

// Close refuses further batches and flushes, waiting as long as that takes:
// the delivery timeout bounds it.
func (p *Producer) Close() error {
	p.mu.Lock()
	if p.stopped == nil {
		p.stopped = ErrClosed
	}
	p.mu.Unlock()
	return p.Flush(context.Background())
}
