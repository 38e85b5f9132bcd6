package client

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// run sends calls about the group, all that go to one broker in one go, and
// waits for the answer to each, trying again as their failures allow. What
// came of each is in it.
func (g *Group) run(ctx context.Context, calls []*groupCall) {
	rest := calls
	reauths := 0
	err := g.c.retry(ctx, true, func(ctx context.Context) (err error) {
		for {
			g.attempt(ctx, rest)
			rest, err = g.unsettled(rest)
			if !errors.Is(err, ErrUnauthenticated) || reauths >= maxReauths {
				return err
			}
			reauths++ // the token expired: the next stream asks for another
		}
	})
	if err == nil {
		return
	}
	for _, call := range rest {
		if (isContext(err) || errors.Is(err, ErrClosed)) && !isContext(call.err) {
			call.err = err
		}
		call.err = call.verdict(call.err)
	}
}

// maxReauths is how often one call answers a refused token with another one.
const maxReauths = 2

// unsettled are the calls that are worth another attempt, and why.
func (g *Group) unsettled(calls []*groupCall) (rest []*groupCall, why error) {
	for _, call := range calls {
		err := call.err
		if err == nil {
			continue
		}
		if call.doubtful && call.op.happened(err) {
			call.err = nil
			continue
		}
		unknown := IsOutcomeUnknown(err)
		call.doubtful = call.doubtful || unknown
		switch {
		case unknown && !call.repeatable(), call.op.listed() && errors.Is(err, ErrNotFound):
			continue
		case unknown, IsRetryable(err), g.c.cfg.renewable && refusedToken(err, call.name()):
			rest = append(rest, call)
			if why == nil {
				why = err
			}
		default:
			call.err = call.verdict(err)
		}
	}
	return rest, why
}

// happened says of a refusal, after an attempt that may have been applied,
// that it was: the request finds done what it asks for.
func (o groupOp) happened(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch o {
	case opNack:
		return e.Code == CodeStaleClaim
	case opDeadLetter:
		return e.Code == CodeInvalidRequest
	case opDiscard, opRedrive:
		return e.Code == CodeNotFound
	}
	return false
}

// listed says that the request is about a record in a list, which "not found"
// then means.
func (o groupOp) listed() bool { return o == opDiscard || o == opRedrive }

// verdict is the error that a call ends with: an attempt that may have been
// applied is not undone by a later one that was not.
func (c *groupCall) verdict(err error) error {
	var e *Error
	if !c.doubtful || IsOutcomeUnknown(err) {
		return err
	}
	if !errors.As(err, &e) {
		return lost(c.name(), "", RetryUnknown, err)
	}
	unknown := *e
	unknown.Retry = RetryUnknown
	return &unknown
}

// attempt sends each call once, to the broker that owns its shard.
func (g *Group) attempt(ctx context.Context, calls []*groupCall) {
	for len(calls) > 0 {
		lots := g.lots(ctx, calls)
		if len(lots) == 1 {
			lots[0].send(ctx, g)
		} else {
			var wg sync.WaitGroup
			for _, l := range lots {
				wg.Go(func() { l.send(ctx, g) })
			}
			wg.Wait()
		}
		calls = nil
		for _, l := range lots {
			calls = append(calls, g.redirect(l)...)
		}
	}
}

// A groupLot is the calls for one broker.
type groupLot struct {
	b     *broker
	calls []*groupCall
}

// lots sorts calls by broker. Those without one have failed.
func (g *Group) lots(ctx context.Context, calls []*groupCall) (lots []*groupLot) {
	for _, call := range calls {
		call.answered, call.to, call.answer = false, nil, nil
		b, err := g.broker(ctx, call.claim.Shard)
		if err != nil {
			call.err = err
			continue
		}
		i := slices.IndexFunc(lots, func(l *groupLot) bool { return l.b == b })
		if i < 0 {
			i = len(lots)
			lots = append(lots, &groupLot{b: b})
		}
		lots[i].calls = append(lots[i].calls, call)
	}
	return lots
}

// send sends the calls of a lot and waits for their answers.
func (l *groupLot) send(ctx context.Context, g *Group) {
	todo := l.calls
	for len(todo) > 0 {
		s, err := l.b.groups.any(ctx)
		if err != nil {
			for _, call := range todo {
				call.err = err
			}
			return
		}
		batch := todo[:0:0]
		for _, call := range todo {
			if call.err = call.supported(s.sess.caps, s.b.addr); call.err == nil {
				batch = append(batch, call)
			}
		}
		sent := g.together(batch, s.sess.caps)
		buf := g.encode(sent)
		todo = apart(sent, s.doAll(ctx, sent), s.b.addr)
		g.c.bufs.put(buf) // streams copy what they send
	}
}

// redirect notes where the shards of a lot are, and gives the calls that are
// to be sent there.
func (g *Group) redirect(l *groupLot) (again []*groupCall) {
	for _, call := range l.calls {
		if call.to == nil {
			if call.err != nil && (isLostCall(call.err) || comesBack(call.err)) {
				g.setOwner(call.claim.Shard, "")
			}
			call.asked = call.asked[:0]
			continue
		}
		call.asked = append(call.asked, l.b.addr)
		to := call.to.addr
		if to == "" || slices.Contains(call.asked, to) || len(call.asked) > maxHops || g.c.endpoints.add(g.c, to) == nil {
			call.err = &Error{
				Op: call.name(), Code: CodeNotLeader, Retry: RetryElsewhere, Broker: l.b.addr,
				Message: "the shard is served by " + call.to.nodeID,
			}
			call.asked = call.asked[:0]
			g.setOwner(call.claim.Shard, "")
			continue
		}
		g.setOwner(call.claim.Shard, to)
		again = append(again, call)
	}
	return again
}

// isLostCall says that a call failed because its broker went away.
func isLostCall(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == ""
}

// broker is where to ask first for a shard: where it was last, if that can be
// reached, else where everything goes.
func (g *Group) broker(ctx context.Context, shard uint32) (*broker, error) {
	g.mu.Lock()
	addr := g.owners[shard]
	g.mu.Unlock()
	if addr != "" {
		if b := g.c.endpoints.add(g.c, addr); b != nil {
			if _, _, err := b.connect(ctx); err == nil {
				return b, nil
			}
		}
		g.setOwner(shard, "")
	}
	return g.c.broker(ctx)
}

// setOwner notes where a shard is; nowhere in particular when addr is empty.
func (g *Group) setOwner(shard uint32, addr string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case addr == "":
		delete(g.owners, shard)
	case len(g.owners) < maxShards:
		if g.owners == nil {
			g.owners = make(map[uint32]string)
		}
		g.owners[shard] = addr
	}
}

// any gives a stream for calls, the least busy of those that are open.
func (p *callPool) any(ctx context.Context) (*callStream, error) {
	if s := p.leastLoaded(); s != nil {
		return s, nil
	}
	return p.open(ctx, 0)
}

// doAll sends calls, as many as fit in one write, and waits until the stream
// lets go of them all, or ctx ends. It returns those of which nothing was sent
// because the stream is gone.
func (s *callStream) doAll(ctx context.Context, calls []*groupCall) (unsent []*groupCall) {
	if len(calls) == 0 {
		return nil
	}
	s.load.Add(int32(len(calls)))
	defer s.load.Add(-int32(len(calls)))
	batch := &groupBatch{left: len(calls), ready: make(chan struct{}, 1)}
	for i := 0; i < len(calls); {
		s.mu.Lock()
		err := s.admit(ctx, calls[i])
		if err != nil {
			batch.left -= len(calls) - i
			none := batch.left == 0
			s.mu.Unlock()
			if errors.Is(err, errStreamGone) {
				unsent = calls[i:]
			} else {
				for _, call := range calls[i:] {
					call.err = err
				}
			}
			if none {
				return unsent
			}
			calls = calls[:i]
			break
		}
		i += s.pushAll(calls[i:], batch)
		s.mu.Unlock()
	}
	select {
	case <-batch.ready:
		return unsent
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		if !call.answered && call.err == nil {
			call.abandoned = true
			call.err = ctxError(call.name(), ctx, RetryUnknown)
		}
	}
	return unsent
}

// pushAll puts calls under way in one write, as many as there is room for, one
// at least. mu is held.
func (s *callStream) pushAll(calls []*groupCall, batch *groupBatch) (n int) {
	buf := s.c.bufs.get(directFrame)
	for _, call := range calls {
		if n > 0 && (s.ring.span() >= maxCalls || len(buf)+len(call.frame) > directFrame) {
			break
		}
		call.batch = batch
		s.push(&call.call)
		n++
		call.number = s.out.put + uint64(n)
		buf = append(buf, call.frame...)
	}
	if err := s.out.sendAll(buf, n); err != nil {
		s.mute()
	}
	s.c.bufs.put(buf)
	return n
}
