package broker

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// A Batch is what one publish appends to one shard.
type Batch struct {
	// Block is the records: u32 count, then count times u32 length and bytes,
	// big-endian. The caller has checked it. Publish copies it.
	Block []byte
	// Count is the number of records and PayloadBytes the sum of their
	// lengths. A batch of no records is complete when its turn comes and
	// appends nothing.
	Count, PayloadBytes int

	// Publisher is who publishes, kept with the batch on a durable stream;
	// empty where it is not to be recorded.
	Publisher string
	// Producer numbers the batch, so that it is appended once however often it
	// comes (wire 9.6).
	Producer Producer
	// Conditional appends only if the batch's first record gets
	// ExpectedOffset (wire 9.7). Durable streams only.
	Conditional    bool
	ExpectedOffset uint64
	// State makes the batch, which is then of one record, an atomic commit of
	// that event and these changes (wire 13). Durable streams only. They are
	// copied.
	State []StateChange
}

// A StateChange is one keyed change of an atomic commit.
type StateChange = stream.StateChange

// A Producer is the number of one batch of an idempotent producer.
type Producer struct {
	// Set says that the batch is numbered.
	Set          bool
	ID, Sequence uint64
}

// A Policy says what a publish does when there is no room for it (broker 3.4).
type Policy uint8

const (
	// Drop refuses at once and counts the publish as dropped: the publisher
	// is not told.
	Drop Policy = iota
	// Fail refuses at once and counts the publish as refused.
	Fail
	// Try refuses at once and counts nothing: the caller comes again.
	Try
	// Wait waits for bytes and slot, at most [Config.QueueWait] for both. A
	// tenant over its quota is refused at once.
	Wait
	// Backpressure waits for quota, bytes and slot until ctx ends.
	Backpressure
)

// A Completion hears how a publish ended. Complete is called once, perhaps
// before Publish returns, on any goroutine, for one shard in the order of its
// publishes. It must not block, nor publish under a policy that waits.
type Completion interface {
	Complete(Result)
}

// A Flusher is a Completion that only notes its answer in Complete and sends
// it in Flush. Flush is called after Complete, once for all publishes one round
// of the log committed, so that their answers leave together. It must not
// block. A completion that shares its flusher with others names it by a
// method Flusher() Flusher instead; each distinct one is flushed once.
type Flusher = stream.Flusher

// flusherOf is who sends what done was told; nil when it did that itself.
func flusherOf(done Completion) Flusher {
	switch d := done.(type) {
	case interface{ Flusher() Flusher }:
		return d.Flusher()
	case Flusher:
		return d
	}
	return nil
}

// A Result is how a publish ended.
type Result struct {
	// Offset is that of the batch's first record.
	Offset uint64
	// HasOffset says that the offset may be told to the publisher, which only
	// a log makes meaningful.
	HasOffset bool
	// Duplicate says that a numbered batch had been appended before, at Offset,
	// and was not again.
	Duplicate bool
	// Err says why the batch was not appended, or with [*StorageFailedError]
	// that it may have been; nil means that it was, on a durable stream on
	// disk, and that every subscription has it or has counted it as dropped.
	Err error
}

// Publish appends a batch to a shard. When it returns nil the batch is
// accepted, in order with all others accepted for this shard, and done, which
// may be nil, hears the outcome. When it returns an error nothing was kept and
// done is not used.
//
// It waits only as policy says, and then on the caller's goroutine: what waits
// is not copied, so it costs no memory but the caller's.
//
// A durable batch is accepted once it is in its lane; it may wait there for its
// shard's log to open or to have room, and its bytes stay charged until it is
// committed.
//
// Errors: [*OverloadedError], [ErrClosed], the cause of ctx, that of the
// shard's end ([stream.ErrRemoved]), [admission.ErrConnectionClosed],
// [*TenantMismatchError], [*NeedsLogError], [ErrCommitShape],
// [ErrEmptyBatch]. A [Result] may
// also have [*RefusedError], [*OffsetMismatchError], [*UnavailableError],
// [*StorageFullError], [*StorageFailedError].
func (b *Broker) Publish(ctx context.Context, sh *stream.Shard, id *admission.Identity, batch Batch, policy Policy, done Completion) error {
	if err := sh.Err(); err != nil {
		return err
	}
	if name := sh.Name(); name.Tenant != id.Tenant() {
		return &TenantMismatchError{Identity: id.Tenant(), Stream: name.Tenant}
	}
	if err := batch.check(sh); err != nil {
		return err
	}
	hold, pass, err := b.admit(ctx, sh, id, batch, policy)
	if err != nil {
		return err
	}
	j := b.jobs.get()
	j.ask(&batch)
	j.broker, j.shard, j.hold, j.done = b, sh, hold, done
	j.envelope = b.hub.NewEnvelope(batch.Block, stream.Meta{Count: batch.Count, PayloadBytes: batch.PayloadBytes})
	j.Cost = int64(batch.PayloadBytes)
	b.queue.Submit(sh.Lane(), pass, &j.Job)
	return nil
}

// ErrCommitShape refuses an atomic commit that is not of one record.
var ErrCommitShape = errors.New("an atomic commit has exactly one event")

// ErrEmptyBatch refuses a numbered or conditional batch of no records, which
// would leave nothing to know it by.
var ErrEmptyBatch = errors.New("batch has no records")

// check refuses what the shard's stream cannot do.
func (batch *Batch) check(sh *stream.Shard) error {
	if len(batch.State) > 0 && batch.Count != 1 {
		return ErrCommitShape
	}
	if batch.Count == 0 && (batch.Producer.Set || batch.Conditional) {
		return ErrEmptyBatch
	}
	if sh.Durable() || !batch.Conditional && len(batch.State) == 0 {
		return nil
	}
	request := "a conditional publish"
	if len(batch.State) > 0 {
		request = "an atomic commit"
	}
	return &NeedsLogError{Stream: sh.Name().String(), Request: request}
}

// admit takes what a publish needs, in order: quota, bytes, slot.
func (b *Broker) admit(ctx context.Context, sh *stream.Shard, id *admission.Identity, batch Batch, policy Policy) (admission.Hold, schedule.Pass, error) {
	a := admitting{
		b: b, shard: sh, account: sh.Account(), policy: policy,
		bytes: max(int64(batch.PayloadBytes+batch.stateBytes()), 1), messages: int64(batch.Count),
	}
	defer a.stopWaiting()
	if a.account.Limited() {
		if err := a.quota(ctx); err != nil {
			return admission.Hold{}, 0, err
		}
	}
	hold, ok := id.TryHold(a.bytes)
	if !ok {
		var err error
		if hold, err = a.holdBytes(ctx, id); err != nil {
			a.account.Refund(a.bytes, a.messages)
			return admission.Hold{}, 0, err
		}
	}
	pass, err := b.queue.TryEnter(sh.Lane())
	if err != nil {
		if pass, err = a.enter(ctx, sh.Lane(), err); err != nil {
			hold.Release()
			a.account.Refund(a.bytes, a.messages)
			return admission.Hold{}, 0, err
		}
	}
	a.account.Admitted(int64(batch.PayloadBytes), a.messages)
	return hold, pass, nil
}

func (batch *Batch) stateBytes() int {
	n := 0
	for i := range batch.State {
		n += len(batch.State[i].Key) + len(batch.State[i].Value)
	}
	return n
}

// An admitting is one publish on its way in, and how long it may still wait.
type admitting struct {
	b               *Broker
	shard           *stream.Shard
	account         *admission.Account
	policy          Policy
	bytes, messages int64

	waiting context.Context // nil until the first wait
	cancel  []func()
}

// errWaited is the cause of a wait that took too long.
var errWaited = errors.New("waited too long for room")

// patience is ctx as far as this publish waits, the same for all its waits.
func (a *admitting) patience(ctx context.Context) context.Context {
	if a.waiting != nil {
		return a.waiting
	}
	waiting, cancel := context.WithCancelCause(ctx)
	a.waiting = waiting
	stop := context.AfterFunc(a.b.stopping, func() { cancel(ErrClosed) })
	life := a.shard.Life()
	unwatch := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	a.cancel = append(a.cancel, func() { stop() }, func() { unwatch() }, func() { cancel(nil) })
	if a.policy == Wait {
		stop := a.b.clock.AfterFunc(a.b.cfg.QueueWait, func() { cancel(errWaited) })
		a.cancel = append(a.cancel, func() { stop() })
	}
	return waiting
}

func (a *admitting) stopWaiting() {
	for _, cancel := range a.cancel {
		cancel()
	}
}

func (a *admitting) quota(ctx context.Context) error {
	for delayed := false; ; delayed = true {
		wait := a.account.Take(a.b.clock.Now(), a.bytes, a.messages)
		if wait == 0 {
			return nil
		}
		if a.policy != Backpressure {
			return a.refuse(admission.TenantQuota, &OverloadedError{Reason: admission.TenantQuota, RetryAfter: wait})
		}
		if !delayed {
			a.account.Count(admission.TenantQuota, admission.Delayed)
		}
		patience := a.patience(ctx)
		over := make(chan struct{})
		stop := a.b.clock.AfterFunc(wait, func() { close(over) })
		select {
		case <-over:
		case <-patience.Done():
			stop()
			return context.Cause(patience)
		}
	}
}

func (a *admitting) holdBytes(ctx context.Context, id *admission.Identity) (admission.Hold, error) {
	if a.policy != Wait && a.policy != Backpressure {
		return admission.Hold{}, a.refuse(admission.BytesFull, errBytesFull)
	}
	hold, err := id.Hold(a.patience(ctx), a.bytes)
	if errors.Is(err, errWaited) {
		return admission.Hold{}, a.refuse(admission.BytesFull, errBytesFull)
	}
	return hold, err
}

func (a *admitting) enter(ctx context.Context, lane *schedule.Lane, err error) (schedule.Pass, error) {
	if !errors.Is(err, schedule.ErrFull) {
		return 0, closedAs(err)
	}
	if a.policy != Wait && a.policy != Backpressure {
		return 0, a.refuse(admission.QueueFull, errQueueFull)
	}
	pass, err := a.b.queue.Enter(a.patience(ctx), lane)
	if errors.Is(err, errWaited) {
		return 0, a.refuse(admission.QueueFull, errQueueFull)
	}
	return pass, closedAs(err)
}

// fullRetry is what a publisher is told to wait when there was no room.
const fullRetry = 10 * time.Millisecond

// The answers that do not depend on the moment, so that a flood allocates
// nothing.
var (
	errQueueFull error = &OverloadedError{Reason: admission.QueueFull, RetryAfter: fullRetry}
	errBytesFull error = &OverloadedError{Reason: admission.BytesFull, RetryAfter: fullRetry}
)

// refuse counts an overload as the policy wants it counted.
func (a *admitting) refuse(r admission.Reason, err error) error {
	switch a.policy {
	case Drop:
		a.account.Count(r, admission.Dropped)
	case Fail, Wait:
		a.account.Count(r, admission.Refused)
	}
	return err
}
