package client

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// A ConsumeOption configures a [Client.Consume].
type ConsumeOption interface {
	applyConsume(consumeOptions) consumeOptions
}

type consumeOptions struct {
	shard       uint32
	oneShard    bool
	concurrency int
	batch       int
	visibility  time.Duration
	consumer    string
	extend      bool
	backoff     func(attempts uint32) time.Duration
	hooks       ConsumeHooks
	drain       time.Duration
	abort       context.Context
	untilEmpty  bool

	shardsEvery time.Duration // how often the number of shards is asked for
	grace       time.Duration // see drainGrace
	lastAnswer  time.Duration // see lastAnswer
}

type consumeOption func(consumeOptions) consumeOptions

func (f consumeOption) applyConsume(o consumeOptions) consumeOptions { return f(o) }

// ConsumeShard works on one shard. The default is every shard of the stream,
// those that it gets later included.
func ConsumeShard(shard uint32) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.shard, o.oneShard = shard, true; return o })
}

// ConsumeConcurrency lets up to n handlers (1 to 4,096) run at once. The
// default is 1: handlers need no locks, and records of a shard are handled in
// their order as long as none has to be repeated.
func ConsumeConcurrency(n int) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.concurrency = n; return o })
}

// ConsumeBatch bounds how many records one poll claims, 1 to 1,000. The
// default is 128. A record that is claimed has lost an attempt if the worker
// dies, whether it was begun or not. So fewer are claimed when handlers are
// slow: not more than can begin within about a second; when the consumer has
// just begun; and as long as records come that were handed out before.
func ConsumeBatch(n int) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.batch = n; return o })
}

// ConsumeVisibility is how long a claim stands that is not extended, 10 ms to
// 12 h.
// It is also how soon others get the records of a worker that died. The
// default is 30 s.
func ConsumeVisibility(d time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.visibility = d; return o })
}

// ConsumeAs names the consumer, in 1 to 128 bytes. A worker that comes again
// under the same name, after a crash or a lost connection, gets the records
// first that it had, without waiting for their claims to lapse. No two
// workers of a group may use one name at the same time.
func ConsumeAs(consumer string) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.consumer = consumer; return o })
}

// ConsumeExtend turns the extension of claims off or on. It is on by default:
// every third of the visibility, until its handler has returned, a claim is
// extended by the whole of it. Claims that wait for a handler are extended too.
func ConsumeExtend(on bool) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.extend = on; return o })
}

// ConsumeBackoff says how long a record is kept back whose handler failed,
// given the number of its deliveries so far. The default is
// [ExponentialBackoff] from 1 s to 5 min.
func ConsumeBackoff(f func(attempts uint32) time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.backoff = f; return o })
}

// ConsumeDrain bounds how long running handlers may go on when the consumer
// ends; then their contexts end too. The default is 30 s.
func ConsumeDrain(timeout time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.drain = timeout; return o })
}

// ConsumeAbort ends the drain early: when ctx ends, so do the contexts of the
// handlers that still run, as at the drain timeout. For a second interrupt.
func ConsumeAbort(ctx context.Context) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.abort = ctx; return o })
}

// ConsumeUntilEmpty ends the consumer, with a drain and without an error, once
// polls of all shards found nothing to hand out and every record claimed so
// far is settled. Records that others hold, or that wait for their back-off,
// do not keep it.
func ConsumeUntilEmpty() ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.untilEmpty = true; return o })
}

// WithConsumeHooks sets the functions told of what happens.
func WithConsumeHooks(h ConsumeHooks) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.hooks = h; return o })
}

// ConsumeHooks are told what a consumer does. Each may be nil. They are called
// from many goroutines, must not block, and must not call the client.
type ConsumeHooks struct {
	// Polled: a poll of a shard ended with this many records, or failed.
	Polled func(shard uint32, records int, took time.Duration, err error)
	// Started: a handler begins, on a record that waited for it this long.
	Started func(d Delivery, waited time.Duration)
	// Finished: a handler returned this, after that time. A panic is a
	// [*PanicError].
	Finished func(d Delivery, took time.Duration, err error)
	// Acked: the broker has finished the record, this long after its handler
	// returned.
	Acked func(c Claim, took time.Duration)
	// Nacked: the record was handed back, to be handed out again after delay.
	Nacked func(c Claim, delay, took time.Duration)
	// DeadLettered: the record was put to the dead letters, as its handler
	// asked.
	DeadLettered func(c Claim, took time.Duration)
	// Extended: the claim stands for this long from now.
	Extended func(c Claim, granted, took time.Duration)
	// Failed: the claim is not settled and the record will be handed out
	// again. The error is a [*ClaimLostError] when the claim was lost, else
	// why the broker could not be told.
	Failed func(c Claim, err error)
}

// ExponentialBackoff doubles from initial with each delivery up to most, and
// takes a random half of that away, so that records that failed together do
// not come back together. A nil random is the runtime's.
func ExponentialBackoff(initial, most time.Duration, random Random) func(attempts uint32) time.Duration {
	if random == nil {
		random = rand.Float64
	}
	return func(attempts uint32) time.Duration {
		const mostDoublings = 40
		doublings := min(max(attempts, 1)-1, mostDoublings)
		d := min(float64(initial)*math.Pow(2, float64(doublings)), float64(most))
		return time.Duration(d * (1 - random()/2))
	}
}
