package client

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/wire"
)

// maxExtensions is how many claims are extended at a time.
const maxExtensions = 512

// schedule puts a claim down for extension. mu is held.
func (k *consumer) schedule(j *job, now time.Time) {
	if !k.o.extend || j.d.Attempts == 0 {
		return
	}
	k.due.remove(j)
	j.due = now.Add(k.period)
	k.due.add(j)
	if k.due.first == j {
		select {
		case k.extended <- struct{}{}:
		default:
		}
	}
}

// extend extends claims as they become due, whether their handlers run or they
// still wait for one, until ctx ends.
func (k *consumer) extend(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait, any := k.untilDue(); any {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
			k.extendDue(ctx)
		case <-k.extended:
		case <-ctx.Done():
			return
		}
	}
}

// untilDue is how long it is until the first claim is due.
func (k *consumer) untilDue() (wait time.Duration, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due.first == nil {
		return 0, false
	}
	return max(time.Until(k.due.first.due), 0), true
}

// extendDue extends the claims that are due. Each is due again a period later,
// however it went: a broker that is lost may be back.
func (k *consumer) extendDue(ctx context.Context) {
	began := time.Now()
	jobs, calls := k.takeDue(began)
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := within(ctx, k.period)
	k.g.run(ctx, calls)
	cancel()
	took := time.Since(began)
	for i, j := range jobs {
		call := calls[i]
		m, granted := call.answer.(*wire.GroupExtended)
		switch {
		case call.err == nil && granted:
			k.granted(call.claim, duration(m.VisibleMS), took)
		case errors.Is(call.err, ErrStaleClaim):
			k.lose(j, call)
		default:
			k.c.cfg.logger.Debug("claim not extended", "shard", call.claim.Shard, "offset", call.claim.Offset, "error", call.err)
		}
	}
}

func (k *consumer) takeDue(now time.Time) (jobs []*job, calls []*groupCall) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for j := k.due.first; j != nil && !j.due.After(now) && len(jobs) < maxExtensions; j = k.due.first {
		jobs = append(jobs, j)
		calls = append(calls, &groupCall{op: opExtend, claim: j.d.Claim, d: k.o.visibility})
		k.schedule(j, now)
	}
	return jobs, calls
}

// granted notes what the broker granted, should that be less than was asked
// for.
func (k *consumer) granted(claim Claim, d, took time.Duration) {
	k.mu.Lock()
	k.period = min(k.period, max(d/3, time.Millisecond))
	k.mu.Unlock()
	if hook := k.o.hooks.Extended; hook != nil {
		hook(claim, d, took)
	}
}

// lose handles a claim that does not stand any longer. A handler that runs is
// told by the end of its context, and the record is left alone.
func (k *consumer) lose(j *job, call *groupCall) {
	lost := &ClaimLostError{Claim: call.claim, Err: call.err}
	k.mu.Lock()
	if j.d.Claim != call.claim || j.state > jobRunning {
		k.mu.Unlock()
		return // finished, or claimed anew
	}
	k.c.cfg.logger.Warn("claim lost", "stream", k.g.name.stream, "group", k.g.id,
		"shard", j.d.Shard, "offset", j.d.Offset, "attempts", j.d.Attempts, "error", call.err)
	queued := j.state == jobQueued
	if queued {
		k.queued--
		k.gone(j)
		k.roomMade()
	} else {
		k.due.remove(j)
		j.lost = lost
		j.cancel(lost)
	}
	k.mu.Unlock()
	if hook := k.o.hooks.Failed; hook != nil && queued {
		hook(call.claim, lost)
	}
}
