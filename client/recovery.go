package client

import (
	"errors"
	"slices"
	"time"
)

// recover sends the lane's failed requests again, in their order, while new
// ones wait. It ends when none is left under way.
func (l *lane) recover() {
	for {
		batch := l.failedRequests()
		if batch == nil {
			return
		}
		if err := l.c.sleep(l.c.ctx, l.pause(batch)); err != nil {
			l.giveUp(batch, err)
			continue
		}
		l.resend(batch)
	}
}

// failedRequests waits until everything under way is settled and takes what
// is to be sent again. When that is nothing, recovery is over.
func (l *lane) failedRequests() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.outstanding > 0 {
		// When the client ends, its streams do, and settle everything.
		if err := l.changed.wait(l.c.ctx); err != nil && l.outstanding > 0 {
			break
		}
	}
	batch := l.redo
	l.redo = nil
	if len(batch) == 0 {
		l.recovering = false
		l.changed.wakeAll()
		return nil
	}
	slices.SortFunc(batch, func(a, b *request) int { return int(int64(a.seq - b.seq)) })
	return batch
}

// pause is how long to wait before batch is sent again.
func (l *lane) pause(batch []*request) time.Duration {
	var attempts int
	var hint time.Duration
	for _, r := range batch {
		if !r.hasty {
			attempts = max(attempts, r.attempts)
		}
		hint = max(hint, r.last.RetryAfter)
	}
	if attempts == 0 {
		return hint // only another stream or a new token is needed
	}
	return max(hint, l.c.cfg.reconnect.wait(attempts))
}

// resend puts batch on a live stream. What no longer finds one fails with
// what the search for one met.
func (l *lane) resend(batch []*request) {
	for i, r := range batch {
		if l.producer != nil && l.producer.p.failed() {
			l.giveUp(batch[i:], l.producer.p.Err())
			return
		}
		err := l.resendOne(r)
		if err != nil {
			if !l.postpone(batch[i:], err) {
				l.giveUp(batch[i:], err)
			}
			return
		}
	}
}

// postpone puts a producer's batches off that found no broker, as long as
// there is time to deliver them. They keep their order.
func (l *lane) postpone(batch []*request, err error) bool {
	if l.producer == nil || !IsRetryable(err) || !l.producer.inTime(batch[0]) || l.producer.p.failed() {
		return false
	}
	for _, r := range batch {
		r.attempts++
		r.hasty = false
	}
	l.mu.Lock()
	l.redo = append(l.redo, batch...)
	l.mu.Unlock()
	return true
}

func (l *lane) resendOne(r *request) error {
	for {
		l.mu.Lock()
		for l.current == nil || l.current.gone() || l.wrongBroker() {
			if l.outstanding > 0 {
				// The stream went away below the ones before: they come
				// first, and this one joins them.
				l.redo = append(l.redo, r)
				l.mu.Unlock()
				return nil
			}
			if err := l.open(l.c.ctx); err != nil {
				l.mu.Unlock()
				return err
			}
		}
		s := l.current
		l.outstanding++
		l.mu.Unlock()
		err := s.enqueue(l.c.ctx, r, false)
		if err == nil {
			return nil
		}
		l.leave()
		if !errors.Is(err, errStreamGone) {
			return err
		}
	}
}

// giveUp ends requests that cannot be sent again, each with what it failed
// of first, unless nothing of it was ever sent.
func (l *lane) giveUp(batch []*request, err error) {
	for _, r := range batch {
		r.finish(Ack{}, l.finalError(r, err))
	}
}

func (l *lane) finalError(r *request, err error) error {
	last := *r.last
	if last.Err == nil {
		last.Err = err
	} else {
		last.Err = errors.Join(last.Err, err)
	}
	var e *Error
	if last.Code == CodeUnauthenticated && errors.As(err, &e) && e.Code == CodeUnauthenticated {
		return r.verdict(e) // says best why no other token was to be had
	}
	return r.verdict(&last)
}

// abandon ends what was to be sent again by a client that is closing.
func (l *lane) abandon() {
	l.mu.Lock()
	batch := l.redo
	l.redo, l.recovering = nil, false
	l.changed.wakeAll()
	l.mu.Unlock()
	l.giveUp(batch, ErrClosed)
}
