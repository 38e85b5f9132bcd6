package client

import (
	"context"
	"errors"
	"time"
)

// A Handler works on one record of a group. The record is acknowledged after
// the handler has returned nil, and never before. When it returns an error or
// panics, the record is handed back and comes again after a back-off, until
// the broker's limit of attempts puts it to the dead letters; [DeadLetter] and
// [RetryAfter] say otherwise.
//
// The context ends when the claim is lost ([context.Cause] is then a
// [*ClaimLostError]) and when a drain times out; it does not end with that of
// Consume.
type Handler = func(ctx context.Context, d Delivery) error

// Consume works on a group until ctx ends: it polls the shards of the stream,
// runs the handler on what it claims, extends the claims meanwhile, and
// acknowledges what was handled, many records at a time, while the next poll
// is under way. It claims no more than can begin soon; see [ConsumeBatch].
//
// A record may be handled more than once: whenever a worker dies, or is cut
// off, between the end of its handler and the acknowledgement. It is never
// acknowledged unhandled.
//
// When ctx ends, Consume stops to poll, hands back what was not begun, lets
// the running handlers finish, settles what they did, and returns nil. What
// does not end within [ConsumeDrain] is a [*DrainError]. A lost broker is
// waited for, however long it takes. A refusal that will not change, such as
// [ErrForbidden] or [ErrNotFound], ends the consumer in the same way and is
// returned.
//
// Consume needs a broker that extends claims ([ErrUnsupported]).
func (c *Client) Consume(ctx context.Context, g *Group, handler Handler, opts ...ConsumeOption) error {
	o := consumeOptions{
		concurrency: 1, batch: defaultConsumeBatch, visibility: defaultVisibility,
		extend: true, drain: defaultDrain, abort: context.Background(),
		backoff:     ExponentialBackoff(time.Second, 5*time.Minute, c.cfg.reconnect.Random),
		shardsEvery: time.Minute, grace: drainGrace, lastAnswer: lastAnswer,
	}
	for _, opt := range opts {
		o = opt.applyConsume(o)
	}
	if g.err != nil {
		return g.err
	}
	if err := o.check(); err != nil {
		return err
	}
	if handler == nil || g.c != c {
		return invalid(opConsume, "a handler and a group of this client are needed")
	}
	return newConsumer(ctx, g, handler, &o).run(ctx)
}

const (
	opConsume = "consume"

	defaultConsumeBatch = 128
	defaultVisibility   = 30 * time.Second
	defaultDrain        = 30 * time.Second
	// drainGrace is how long handlers may take to notice that their contexts
	// ended, and their records to be settled.
	drainGrace = 5 * time.Second

	// lastAnswer is how long polls that are under way when the consumer ends
	// may still be answered. The claims of an answer that nobody reads would
	// stand until they lapse.
	lastAnswer = 200 * time.Millisecond

	maxConcurrency = 4096
)

func (o *consumeOptions) check() error {
	bounds := []bound{
		{"concurrency", int64(o.concurrency), 1, maxConcurrency, ""},
		{"records of a poll", int64(o.batch), 1, maxPollMax, ""},
		{"visibility", o.visibility.Milliseconds(), 10, maxVisibility.Milliseconds(), " ms"},
		{"length of the consumer's name", int64(len(o.consumer)), 0, maxConsumer, " bytes"},
	}
	if err := inBounds(opConsume, bounds...); err != nil {
		return err
	}
	if o.backoff == nil || o.abort == nil {
		return invalid(opConsume, "an option without its value")
	}
	return nil
}

// run works until it is told to stop, and drains.
func (k *consumer) run(ctx context.Context) error {
	polls, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(k.c.ctx, func() { stop(ErrClosed) })()
	defer context.AfterFunc(polls, k.stopBeginning)()
	k.stop = stop
	answers, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(polls, func() { time.AfterFunc(k.o.lastAnswer, giveUp) })()
	k.answers = answers
	if k.o.extend {
		k.background.Go(func() { k.extend(k.settle) })
	}
	if err := k.pullAll(polls); err != nil {
		stop(err)
	}
	k.pullers.Wait()

	why := context.Cause(polls)
	if ctx.Err() != nil && why == context.Cause(ctx) {
		why = nil
	}
	return k.drain(why)
}

// stopBeginning lets no further handler begin.
func (k *consumer) stopBeginning() {
	k.mu.Lock()
	k.stopping = true
	k.mu.Unlock()
}

// errDrainTimeout is the cause with which the contexts of handlers end that
// outlast the drain.
var errDrainTimeout = errors.New("the drain of the consumer timed out")

// drain hands back what was not begun and waits for the rest.
func (k *consumer) drain(why error) error {
	k.stopBeginning()
	k.handBack()
	timeout := time.NewTimer(k.o.drain)
	defer timeout.Stop()
	idle := k.whenIdle()
	cut := 0
	select {
	case <-idle:
	case <-k.o.abort.Done():
		cut = k.cut()
	case <-timeout.C:
		cut = k.cut()
	}
	grace := time.NewTimer(k.o.grace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	}
	k.endHandlers(errDrainTimeout)
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
	k.endSettle()
	k.background.Wait()

	k.mu.Lock()
	defer k.mu.Unlock()
	if cut > 0 || k.running > 0 || k.settling > 0 {
		return &DrainError{Cut: cut, Running: k.running, Unsettled: k.settling, Cause: why}
	}
	return why
}

// cut ends the contexts of the handlers that still run, and counts them.
func (k *consumer) cut() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endHandlers(errDrainTimeout)
	return k.running
}
