package broker

import (
	"sync"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/shardlog"
)

// A stage is what a publish has to do next.
type stage uint8

const (
	toClaim  stage = iota // on the lane: get offsets, in memory or of the log
	toApply               // committed: ring and fanout
	toAnswer              // applied: only the answer is left
	answered              // nothing
)

// A publishJob is one accepted publish on its way: in memory through its lane,
// on a durable stream through its lane to the log, and from the log's round
// through its turn.
type publishJob struct {
	schedule.Job
	broker   *Broker
	shard    *stream.Shard
	envelope *stream.Envelope
	hold     admission.Hold
	done     Completion // may be nil
	stage    stage

	producer Producer
	opts     stream.Append
	entry    shardlog.Entry

	// turn, committed and failure are what the log answered.
	turn      stream.Turn
	committed shardlog.Appended
	failure   error

	offset    uint64
	hasOffset bool
	duplicate bool
}

var (
	_ schedule.Task   = (*publishJob)(nil)
	_ stream.Appender = (*publishJob)(nil)
	_ stream.TurnTask = (*publishJob)(nil)
)

// ask keeps what a batch asks beside its records.
func (j *publishJob) ask(batch *Batch) {
	j.producer = batch.Producer
	j.opts = stream.Append{
		Publisher:   batch.Publisher,
		HasProducer: batch.Producer.Set, ProducerID: batch.Producer.ID, Sequence: batch.Producer.Sequence,
		Conditional: batch.Conditional, Expected: batch.ExpectedOffset,
	}
	if len(batch.State) > 0 {
		j.opts.State = stream.AppendStateChanges(nil, batch.State)
	}
}

// Run does the next stage. A batch that waits, for a place in the log or for a
// full queue, comes back through Settled.
func (j *publishJob) Run() schedule.Verdict {
	switch {
	case j.stage == toAnswer:
		j.answer(nil)
		return schedule.Done
	case j.stage == toApply:
		return j.applyCommitted()
	case !j.shard.Durable():
		return j.claim()
	case j.envelope.Count() > 0:
		return j.append()
	}
	return j.nothing()
}

// claim gives a batch in memory its offsets and applies it; nothing lies
// between the two.
func (j *publishJob) claim() schedule.Verdict {
	var err error
	if j.producer.Set {
		j.offset, j.duplicate, err = j.shard.ClaimOnce(j.envelope, j.producer.ID, j.producer.Sequence)
	} else {
		j.offset, err = j.shard.Claim(j.envelope)
	}
	j.release()
	if err != nil || j.duplicate {
		j.envelope.Discard()
		j.answer(err)
		return schedule.Done
	}
	return j.apply()
}

// nothing answers a durable batch of no records.
func (j *publishJob) nothing() schedule.Verdict {
	j.release()
	j.envelope.Discard()
	j.answer(j.shard.Err())
	return schedule.Done
}

// append hands a durable batch to the log and frees the lane.
func (j *publishJob) append() schedule.Verdict {
	held, err := j.shard.Append(j.envelope, &j.opts, &j.entry, j)
	switch {
	case held:
		return schedule.Held // j may already be somebody else's
	case err != nil:
		j.release()
		j.envelope.Discard()
		j.answer(err)
	}
	return schedule.Done // without an error j may already be somebody else's
}

// Committed takes what the log answers to its turn.
func (j *publishJob) Committed(a shardlog.Appended, err error) {
	j.committed, j.failure = a, err
	j.stage = toApply
	j.turn.Task = j
	j.shard.Commit(&j.turn)
}

// Take runs the batch's turn.
func (j *publishJob) Take() (waiting bool) { return j.broker.queue.Guard(&j.Job) == schedule.Held }

func (j *publishJob) applyCommitted() schedule.Verdict {
	j.release()
	if j.failure != nil || j.committed.Duplicate {
		j.envelope.Discard()
	}
	if j.failure != nil {
		j.answer(j.shard.CommitError(j.failure))
		return schedule.Done
	}
	j.offset, j.hasOffset = j.committed.First, true
	j.duplicate = j.committed.Duplicate
	if j.duplicate {
		j.answer(nil)
		return schedule.Done
	}
	j.shard.Stamp(j.envelope, j.committed, j.opts.Publisher)
	if len(j.opts.State) > 0 {
		j.shard.ApplyState(j.committed, j.opts.State)
	}
	return j.apply()
}

// apply makes the batch visible and answers it, unless a full queue holds it
// up.
func (j *publishJob) apply() schedule.Verdict {
	j.stage = toAnswer
	out, err := j.shard.Apply(j.envelope, j)
	if out.Waiting {
		return schedule.Held // j may already be somebody else's
	}
	if j.hasOffset {
		err = nil // it is on disk, though nobody reads the stream any more
	}
	j.answer(err)
	if out.Crowded {
		return schedule.DoneYield
	}
	return schedule.Done
}

// Settled goes on with a batch that waited.
func (j *publishJob) Settled() {
	if !j.hasOffset {
		j.shard.Lane().Continue(&j.Job)
		return
	}
	sh := j.shard
	j.broker.queue.Guard(&j.Job)
	sh.Resume()
}

// Fail ends a batch whose Run panicked, also when it was the completion that
// did.
func (j *publishJob) Fail(err error) {
	j.release()
	if j.stage == answered {
		j.broker.jobs.put(j)
		return
	}
	j.answer(err)
}

// release gives the batch's bytes back.
func (j *publishJob) release() {
	j.hold.Release()
	j.hold = admission.Hold{}
}

// answer tells the completion, once, and recycles the job.
func (j *publishJob) answer(err error) {
	turned := j.turn.Task != nil
	j.stage = answered
	r := Result{Err: err}
	if err == nil {
		r.Offset, r.HasOffset, r.Duplicate = j.offset, j.hasOffset, j.duplicate
	} else {
		j.broker.failed.Add(1)
	}
	if j.done != nil {
		j.done.Complete(r)
		if f := flusherOf(j.done); f != nil && turned {
			j.shard.Answered(f)
		} else if f != nil {
			f.Flush()
		}
	}
	j.broker.jobs.put(j)
}

// A jobPool keeps jobs for reuse.
type jobPool struct {
	pool sync.Pool
}

func (p *jobPool) get() *publishJob {
	if j, ok := p.pool.Get().(*publishJob); ok {
		return j
	}
	j := &publishJob{}
	j.Task = j
	return j
}

func (p *jobPool) put(j *publishJob) {
	task := j.Task
	*j = publishJob{}
	j.Task = task
	p.pool.Put(j)
}
