package client

import (
	"errors"
	"slices"
	"time"
)

// maxFlights is how many requests with settlements are under way at a time.
// What finishes meanwhile gathers for the next one.
const maxFlights = 4

// finished puts a job among those to be settled. mu is held.
func (k *consumer) finished(j *job, op groupOp, delay time.Duration) {
	k.due.remove(j)
	j.state, j.op, j.delay, j.ended = jobFinished, op, delay, time.Now()
	k.settling++
	k.unsent = append(k.unsent, j)
	k.flush()
}

// flush settles what is to be settled, beside what is under way. mu is held.
func (k *consumer) flush() {
	if len(k.unsent) > 0 && k.flights < maxFlights && !k.ended {
		k.flights++
		k.background.Go(k.fly)
	}
}

// fly settles jobs, all that have gathered at a time, until none is left.
func (k *consumer) fly() {
	failures := 0
	for {
		jobs, calls := k.board()
		if len(jobs) == 0 {
			return
		}
		k.g.run(k.settle, calls)
		if k.landed(jobs, calls) {
			failures = 0
			continue
		}
		failures++
		k.pause(k.settle, failures)
	}
}

// board takes the jobs to be settled; none ends the flight.
func (k *consumer) board() ([]*job, []*groupCall) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(len(k.unsent), maxCalls)
	if n == 0 || k.ended || k.settle.Err() != nil {
		k.flights--
		return nil, nil
	}
	jobs := slices.Clone(k.unsent[:n])
	k.unsent = slices.Delete(k.unsent, 0, n)
	own := make([]groupCall, n)
	calls := make([]*groupCall, n)
	for i, j := range jobs {
		own[i] = groupCall{op: j.op, claim: j.d.Claim, d: j.delay}
		calls[i] = &own[i]
	}
	return jobs, calls
}

// landed takes the answers. What the broker could not be told comes again;
// then ok is false.
func (k *consumer) landed(jobs []*job, calls []*groupCall) (ok bool) {
	now := time.Now()
	ok = true
	told := make([]bool, len(jobs))
	k.mu.Lock()
	for i, j := range jobs {
		err := calls[i].err
		told[i] = true
		switch {
		case err == nil && j.op != opAck && calls[i].claim != j.d.Claim:
			k.requeue(j, now) // the answer was slower than the next poll
		case err == nil:
			k.settled(j)
		case errors.Is(err, ErrStaleClaim) && calls[i].claim != j.d.Claim:
			k.unsent = append(k.unsent, j) // the record came again meanwhile
			told[i] = false
		case !errors.Is(err, ErrStaleClaim) && (k.settle.Err() != nil || !lasting(err)):
			k.unsent = append(k.unsent, j)
			told[i], ok = false, false
		default:
			k.settled(j)
		}
	}
	k.begin()
	k.roomMade()
	k.mu.Unlock()
	for i, j := range jobs {
		if told[i] {
			k.tell(calls[i], now.Sub(j.ended))
		}
	}
	return ok
}

// requeue begins again with a record that was handed back, and has come again
// since. mu is held.
func (k *consumer) requeue(j *job, now time.Time) {
	k.settled(j)
	again := &job{d: j.d, shard: j.shard}
	k.enqueue(again, now)
	if k.stopping {
		k.queued--
		k.finished(again, opNack, 0)
	}
}

// settled forgets a job. mu is held.
func (k *consumer) settled(j *job) {
	k.settling--
	k.gone(j)
}

// tell tells the hooks how a job ended.
func (k *consumer) tell(call *groupCall, took time.Duration) {
	h := &k.o.hooks
	switch {
	case call.err != nil:
		k.c.cfg.logger.Warn("record not settled", "stream", k.g.name.stream, "group", k.g.id,
			"shard", call.claim.Shard, "offset", call.claim.Offset, "error", call.err)
		if h.Failed != nil {
			h.Failed(call.claim, call.err)
		}
	case call.op == opAck && h.Acked != nil:
		h.Acked(call.claim, took)
	case call.op == opNack && h.Nacked != nil:
		h.Nacked(call.claim, call.d, took)
	case call.op == opDeadLetter && h.DeadLettered != nil:
		h.DeadLettered(call.claim, took)
	}
}
