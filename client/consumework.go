package client

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// begin starts handlers for what is queued, as many as may run. mu is held.
func (k *consumer) begin() {
	for k.running < k.o.concurrency {
		w := k.take()
		if w == nil {
			return
		}
		go k.work(w)
	}
}

// work is a job with what its handler is given.
type work struct {
	j      *job
	ctx    context.Context
	d      Delivery
	waited time.Duration
}

// take begins the first job that is queued; nil when there is none, or the
// consumer is ending. mu is held.
func (k *consumer) take() *work {
	for len(k.queue) > 0 && !k.stopping {
		j := k.queue[0]
		k.queue[0] = nil
		k.queue = k.queue[1:]
		if j.state != jobQueued {
			continue
		}
		j.state = jobRunning
		k.queued--
		k.running++
		w := &work{j: j, d: j.d, waited: time.Since(j.arrived)}
		w.ctx, j.cancel = context.WithCancelCause(k.handlers)
		return w
	}
	return nil
}

// work runs handlers, one after the other, while there is something to do.
func (k *consumer) work(w *work) {
	for w != nil {
		w = k.handle(w)
	}
}

// handle runs the handler on one record and gives the next one.
func (k *consumer) handle(w *work) (next *work) {
	if hook := k.o.hooks.Started; hook != nil {
		hook(w.d, w.waited)
	}
	began := time.Now()
	exited := true
	var err error = &PanicError{}
	defer func() {
		next = k.handled(w, time.Since(began), err)
		if exited && next != nil {
			go k.work(next) // the handler ended its goroutine, which is this one
		}
	}()
	err = k.call(w)
	exited = false
	return nil
}

// call calls the handler and survives its panics.
func (k *consumer) call(w *work) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	err = k.handler(w.ctx, w.d)
	returned = true
	return err
}

// handled takes what a handler returned, and gives the next job.
func (k *consumer) handled(w *work, took time.Duration, err error) *work {
	j := w.j
	if hook := k.o.hooks.Finished; hook != nil {
		hook(w.d, took, err)
	}
	if err != nil {
		k.report(w, err)
	}
	op, delay := k.verdict(w, err)
	j.cancel(nil)

	k.mu.Lock()
	k.running--
	k.measure(took, err)
	lost := j.lost
	if lost == nil {
		k.finished(j, op, delay)
	} else {
		k.gone(j)
	}
	next := k.take()
	k.roomMade()
	k.mu.Unlock()
	if hook := k.o.hooks.Failed; hook != nil && lost != nil {
		hook(lost.Claim, lost)
	}
	return next
}

// measure notes how long a handler took, and that it ended well. mu is held.
func (k *consumer) measure(took time.Duration, err error) {
	const weight = 8
	if k.average == 0 {
		k.average = took
	}
	k.average += (took - k.average) / weight
	if err == nil && k.proven < 2*k.o.batch {
		k.proven++
	}
}

// verdict says how a record is to be settled whose handler returned err.
func (k *consumer) verdict(w *work, err error) (op groupOp, delay time.Duration) {
	var v *verdictError
	switch {
	case err == nil:
		return opAck, 0
	case errors.As(err, &v) && v.dead:
		return opDeadLetter, 0
	case v != nil:
		return opNack, max(v.delay, 0)
	case errors.Is(context.Cause(w.ctx), errDrainTimeout):
		return opNack, 0 // it was not the record's fault
	}
	return opNack, max(k.o.backoff(w.d.Attempts), 0)
}

// report logs the failure of a handler.
func (k *consumer) report(w *work, err error) {
	log := k.c.cfg.logger.With("stream", k.g.name.stream, "group", k.g.id,
		"shard", w.d.Shard, "offset", w.d.Offset, "attempts", w.d.Attempts)
	var p *PanicError
	if errors.As(err, &p) {
		log.Error("handler panicked", "error", err, "stack", string(p.Stack))
		return
	}
	log.Warn("handler failed", "error", err)
}
