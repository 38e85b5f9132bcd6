package broker

import (
	"sync"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// A publishJob is one accepted publish on its way through its lane.
type publishJob struct {
	schedule.Job
	broker   *Broker
	shard    *stream.Shard
	envelope *stream.Envelope
	hold     admission.Hold
	done     Completion // may be nil
	offset   uint64
	// applied says that what is left to do is to answer, answered that
	// nothing is.
	applied, answered bool
}

var (
	_ schedule.Task = (*publishJob)(nil)
	_ stream.Waiter = (*publishJob)(nil)
)

// Run claims and applies the batch; in memory nothing lies between the two.
// When a full queue held the batch up, Run is called again to answer.
func (j *publishJob) Run() schedule.Verdict {
	if j.applied {
		j.answer(nil)
		return schedule.Done
	}
	offset, err := j.shard.Claim(j.envelope)
	j.hold.Release()
	j.hold = admission.Hold{}
	if err != nil {
		j.envelope.Discard()
		j.answer(err)
		return schedule.Done
	}
	j.offset, j.applied = offset, true
	out, err := j.shard.Apply(j.envelope, j)
	if out.Waiting {
		return schedule.Held // j may already be somebody else's
	}
	j.answer(err)
	if out.Crowded {
		return schedule.DoneYield
	}
	return schedule.Done
}

// Settled goes on with a batch that waited for a full queue.
func (j *publishJob) Settled() { j.shard.Lane().Continue(&j.Job) }

// Fail ends a batch whose Run panicked, also when it was the completion that
// did.
func (j *publishJob) Fail(err error) {
	j.hold.Release()
	if j.answered {
		j.broker.jobs.put(j)
		return
	}
	j.answer(err)
}

// answer tells the completion, once, and recycles the job.
func (j *publishJob) answer(err error) {
	j.answered = true
	r := Result{Err: err}
	if err == nil {
		r.Offset, r.HasOffset = j.offset, j.shard.Durable()
	} else {
		j.broker.failed.Add(1)
	}
	if j.done != nil {
		j.done.Complete(r)
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
