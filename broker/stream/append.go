package stream

import (
	"errors"

	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// An Append is what a batch asks of the log beside its records.
type Append struct {
	// Publisher is who publishes; empty where it is not recorded. It is cut to
	// the 255 bytes a batch can carry.
	Publisher string
	// HasProducer numbers the batch: the log takes each number once.
	HasProducer          bool
	ProducerID, Sequence uint64
	// Conditional appends only if the batch gets the Expected offset.
	Conditional bool
	Expected    uint64
	// State are the operations of an atomic commit ([AppendStateChanges]);
	// empty for plain records.
	State []byte
}

// An Appender hears of a batch given to the log: of its commit in offset
// order, and before that, when it had to wait, that it may try again.
type Appender interface {
	shardlog.Completion
	Waiter
}

// Append gives a batch to the shard's log. The caller holds the lane and the
// envelope. When it answers held, nothing was kept and a.Settled says when to
// try again, perhaps before Append returns. On an error nothing was kept. On
// neither, a.Committed hears the rest, perhaps before Append returns, and is
// to pass a turn to [Shard.Commit].
//
// entry is scratch memory the caller keeps until Append returns.
//
// Errors: [*UnavailableError], [*StorageFullError], [*OffsetMismatchError],
// [*RefusedError], why the shard serves no longer.
func (sh *Shard) Append(e *Envelope, opts *Append, entry *shardlog.Entry, a Appender) (held bool, err error) {
	if err := sh.Err(); err != nil {
		return false, err
	}
	d := sh.durable
	if !d.turns.reserve(d, a) {
		return true, nil
	}
	o := d.opened()
	if err = sh.Err(); err == nil {
		if err = o.refused; err == nil {
			err = sh.appendTo(o.log, e, opts, entry, a)
		}
	}
	if err == nil {
		return false, nil
	}
	d.turns.done(1)
	if errors.Is(err, shardlog.ErrBusy) {
		go func() {
			<-o.log.Room()
			a.Settled()
		}()
		return true, nil
	}
	return false, sh.refusal(err)
}

func (sh *Shard) appendTo(log *shardlog.Log, e *Envelope, opts *Append, entry *shardlog.Entry, a Appender) (err error) {
	*entry = shardlog.Entry{
		Kind: segment.Records, Count: e.meta.Count, Block: e.block,
		Publisher:   opts.Publisher[:min(len(opts.Publisher), segment.MaxPublisher)],
		HasProducer: opts.HasProducer, ProducerID: opts.ProducerID, Sequence: opts.Sequence,
	}
	if len(opts.State) > 0 {
		entry.Kind, entry.Extra = segment.Commit, opts.State
	}
	if opts.Conditional {
		_, err = log.AppendAt(opts.Expected, entry, a)
	} else {
		_, err = log.Append(entry, a)
	}
	return err
}

// refusal is a log's refusal of a batch of which nothing was kept.
func (sh *Shard) refusal(err error) error {
	var mismatch *shardlog.OffsetMismatchError
	var refused *shardlog.RefusedError
	switch {
	case errors.As(err, &mismatch):
		return &OffsetMismatchError{Expected: mismatch.Expected, Tail: mismatch.Tail}
	case errors.As(err, &refused):
		return &RefusedError{Verdict: refused.Verdict}
	}
	return sh.CommitError(err)
}

// CommitError says what a failure the log reported means to the publisher.
func (sh *Shard) CommitError(err error) error {
	if end := sh.Err(); end != nil && errors.Is(err, shardlog.ErrClosed) {
		return end
	}
	var unavailable *UnavailableError
	var full *shardlog.FullError
	var lost *shardlog.SyncFailedError
	switch {
	case errors.As(err, &unavailable), err == sh.Err():
		return err
	case errors.As(err, &full):
		return &StorageFullError{Shard: sh.String(), Err: err}
	case errors.As(err, &lost) && lost.Unknown:
		return &StorageFailedError{Shard: sh.String(), Err: err}
	case errors.Is(err, shardlog.ErrInvalid):
		return err
	}
	return sh.unavailable(Failed, err)
}

// Commit queues the turn of a batch whose commit was reported. Turns are taken
// in the order of the commits, one at a time, on the goroutine of some Commit
// or [Shard.Resume].
func (sh *Shard) Commit(t *Turn) { sh.durable.turns.push(t) }

// Resume goes on after a turn that waited for a full queue and is over now.
func (sh *Shard) Resume() { sh.durable.turns.resume() }

// Answered says that f has an answer to send with the others of the round.
func (sh *Shard) Answered(f Flusher) { sh.durable.turns.answered(f) }

// Stamp gives a committed batch what the log gave it.
func (sh *Shard) Stamp(e *Envelope, a shardlog.Appended, publisher string) {
	e.meta.BaseOffset = a.First
	e.meta.TimestampMicros = a.TimestampMicros
	e.meta.Publisher = publisher[:min(len(publisher), segment.MaxPublisher)]
	e.describe()
}
