package session

import (
	"context"
	"errors"
	"sync"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/wire"
)

const (
	// maxPolls is how many polls of one stream may be under way; the stream is
	// not read on meanwhile.
	maxPolls = 64
	// maxConnectionPolls is the same for one connection; more are refused.
	maxConnectionPolls = 4096
)

// errAbandoned ends the polls of a stream that ends before their time.
var errAbandoned = errors.New("stream ended")

// polls are the group polls of one client stream that are under way, each on a
// goroutine of its own. They end with the stream's writing half, which the
// client ends when it no longer wants an answer, with the rights of its token
// and with the node: then nothing is claimed any more.
type polls struct {
	s *control

	// The lock of the stream's replies guards what follows, so that a failed
	// poll knows what else the stream owes when it is answered.
	running int
	left    sync.Cond // one has left
	ctx     context.Context
	cancel  context.CancelCauseFunc
	ended   error       // what ended them before there were any
	unwatch func() bool // lets go of the node's drain
}

func (p *polls) init(s *control) {
	p.s = s
	p.left.L = &s.out.mu
}

// start begins a poll, waiting while as many as may be are under way.
func (p *polls) start(m *wire.GroupPoll, r *groupRoute, o queue.PollOptions) error {
	c := p.s.c
	running := c.polls.Add(1)
	if running > maxConnectionPolls {
		c.polls.Add(-1)
		return tooManyPolls()
	}
	o.MaxBytes = min(o.MaxBytes, pollShare(running))
	ctx := p.enter()
	if ctx == nil {
		c.polls.Add(-1)
		return errEnded
	}
	c.owed.Add(1)
	c.streams.Add(1)
	go func() {
		defer c.streams.Done()
		p.poll(ctx, m.RequestID, r, o)
		p.leave()
		c.owed.Add(-1)
		c.polls.Add(-1)
	}()
	return nil
}

// enter takes a place. No context means that the stream has ended. Without room
// what has gathered is let out first: a peer that gets no answers might never
// make any.
func (p *polls) enter() context.Context {
	out := p.s.out
	out.mu.Lock()
	full := p.running >= maxPolls
	out.mu.Unlock()
	if full {
		if out.flush() != nil {
			return nil
		}
		defer out.beginRound()
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	for p.running >= maxPolls {
		p.left.Wait()
	}
	p.running++
	return p.contextLocked()
}

func (p *polls) contextLocked() context.Context {
	if p.ctx == nil {
		ctx, cancel := context.WithCancelCause(p.s.stream.Context())
		p.ctx, p.cancel = ctx, cancel
		p.unwatch = context.AfterFunc(p.s.c.srv.drained, func() { cancel(errDrained) })
		if p.ended != nil {
			cancel(p.ended)
		}
	}
	return p.ctx
}

func (p *polls) leave() {
	p.s.out.mu.Lock()
	p.running--
	p.left.Broadcast()
	p.s.out.mu.Unlock()
}

// end ends the polls under way and those that come.
func (p *polls) end(cause error) {
	p.s.out.mu.Lock()
	defer p.s.out.mu.Unlock()
	if p.ctx == nil {
		p.ended = cause
		return
	}
	p.cancel(cause)
}

// settle waits until no poll is under way. Whoever calls it has flushed the
// round.
func (p *polls) settle() {
	p.s.out.mu.Lock()
	defer p.s.out.mu.Unlock()
	for p.running > 0 {
		p.left.Wait()
	}
	if p.ctx != nil {
		p.unwatch()
		p.cancel(nil)
	}
}

// poll runs one poll and answers it.
func (p *polls) poll(ctx context.Context, requestID uint64, r *groupRoute, o queue.PollOptions) {
	s := p.s
	records, err := s.c.srv.broker.Groups().Poll(ctx, r.ref, o)
	if err != nil {
		p.fail(ctx, requestID, err)
		return
	}
	answer, tooLarge := s.pollAnswer(requestID, records)
	if tooLarge != nil {
		s.c.srv.log.Warn("record is too large for the answer to a poll", "shard", r.ref.Shard.Name().String(), "index", r.ref.Shard.Index(),
			"group", r.ref.Group, "offset", tooLarge.Offset, "bytes", len(tooLarge.Payload), "attempts", tooLarge.Attempts)
		if len(answer.Records) == 0 {
			p.refuse(requestID, recordTooLarge(tooLarge))
			return
		}
	}
	p.deliver(r, answer, records)
}

// deliver sends the answer with records. What could not be sent is owed to
// others; so is what comes for a peer that has not read what it was given
// before, whose poll is answered empty.
func (p *polls) deliver(r *groupRoute, answer *wire.GroupRecords, records []queue.Record) {
	s, given, bytes := p.s, len(answer.Records), 0
	for i := range answer.Records {
		bytes += inAnswer(len(answer.Records[i].Payload))
	}
	if !s.c.answers.take(bytes) {
		s.c.srv.broker.Groups().Unclaim(r.ref, records)
		_ = s.out.deliver(&wire.GroupRecords{RequestID: answer.RequestID})
		return
	}
	defer s.c.answers.release(bytes)
	for i := range records {
		records[i].Payload = nil // the answer has it, until that is written
	}
	if s.out.deliver(answer) != nil {
		s.c.srv.broker.Groups().Unclaim(r.ref, records)
		return
	}
	s.c.srv.metrics.Groups.Delivered.Add(float64(given))
}

// fail answers a poll that was given no records and did not come to the end of
// its wait. Why it ended early is told where it is a failure; a node that
// stops, and a stream that ends, give an empty answer.
func (p *polls) fail(ctx context.Context, requestID uint64, err error) {
	var ended *refusal
	switch cause := context.Cause(ctx); {
	case cause == nil:
		p.refuse(requestID, asGroupRefusal(retried(err)))
	case errors.As(cause, &ended):
		p.refuse(requestID, ended)
	case errors.Is(cause, errDrained), errors.Is(cause, errAbandoned):
		_ = p.s.out.deliver(&wire.GroupRecords{RequestID: requestID})
	}
}

// refuse answers a poll with `error`, which names no request and is taken for
// the answer to the oldest (wire 8.1). Where the stream owes another, the poll
// is answered empty instead: its client polls again, or finds out with the next
// request.
func (p *polls) refuse(requestID uint64, r *refusal) {
	s := p.s
	s.c.srv.metrics.Groups.Errors.Inc()
	var answer wire.Message = &wire.GroupRecords{RequestID: requestID}
	s.out.mu.Lock()
	if p.running == 1 && s.out.owed == 0 {
		answer = s.c.srv.refusalTo(s.offer, r)
	}
	s.out.setLocked(wire.AppendMessage(s.out.pending, answer))
	s.out.mu.Unlock()
	s.out.kick()
}

func tooManyPolls() *refusal {
	r := refuse(wire.CodeOverloaded, "too many polls of this connection are under way; wait for one of them, or use another connection")
	r.Detail = wire.Detail{Reason: reasonPolls, RetryAfterMS: milliseconds(pollsRetry)}
	return r
}
