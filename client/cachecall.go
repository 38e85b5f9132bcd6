package client

import (
	"context"
	"errors"
	"sync"

	"github.com/felixlog/felix/wire"
)

// A cacheOp is a kind of cache request.
type cacheOp uint8

const (
	opGet cacheOp = iota
	opGetVersioned
	opPut
	opDelete
	opPutIf
	opDeleteIf
	opCounterAdd
	opCounterGet
)

func (o cacheOp) String() string {
	switch o {
	case opGet, opGetVersioned:
		return "cache get"
	case opPut:
		return "cache put"
	case opDelete:
		return "cache delete"
	case opPutIf:
		return "cache put if"
	case opDeleteIf:
		return "cache delete if"
	case opCounterAdd:
		return "counter add"
	default:
		return "counter get"
	}
}

// reads says that the request changes nothing, so that it may be sent again
// whatever became of it.
func (o cacheOp) reads() bool { return o == opGet || o == opGetVersioned || o == opCounterGet }

// once says that the request is never sent twice, even where the broker says
// that nothing of it was applied.
func (o cacheOp) once() bool { return o == opCounterAdd }

// supported is an error unless the broker serves the request (wire 5.2).
func (o cacheOp) supported(caps *capabilities, addr string) error {
	switch o {
	case opDelete:
		return caps.require(wire.FeatureCacheDelete, "CACHE_DELETE", addr)
	case opPutIf, opDeleteIf, opGetVersioned:
		return caps.require(wire.FeatureCacheConditional, "CACHE_CONDITIONAL", addr)
	case opCounterAdd, opCounterGet:
		return caps.require(wire.FeatureCounters, "COUNTERS", addr)
	default:
		return nil
	}
}

// A cacheCall is one cache request on its way. It belongs to its caller
// before and after the stream has it, and to the stream in between; one that
// its caller abandoned stays with the stream.
type cacheCall struct {
	call
	op    cacheOp
	key   []byte
	ready chan struct{} // one token: the stream has let go of it

	// Messages to encode from, so that a call does not allocate them.
	get wire.CacheGet
	put wire.CachePut

	// Guarded by the stream's mutex.
	value      []byte // appended to what the caller gave
	ok         bool
	version    uint64
	hasVersion bool
	counter    int64
	to         *redirect // the answer was that another broker serves the shard
}

func (c *cacheCall) name() string { return c.op.String() }

func (c *cacheCall) done() { c.ready <- struct{}{} }

func (c *cacheCall) fill(m wire.Message) (fits bool, id wire.Optional[uint64]) {
	switch m := m.(type) {
	case *wire.CacheValue:
		fits, id = c.op.reads() || c.op == opDelete, m.RequestID
		if fits && !c.abandoned {
			c.setValue(m)
		}
	case *wire.CacheOK:
		fits, id = c.op == opPut, wire.Some(m.RequestID)
	case *wire.OK:
		fits = c.op == opPut
	case *wire.CacheConditionResult:
		fits, id = c.op == opPutIf || c.op == opDeleteIf, wire.Some(m.RequestID)
		c.ok = m.Applied
		c.version, c.hasVersion = m.Version.Get()
	case *wire.CounterValue:
		fits, id = c.op == opCounterAdd || c.op == opCounterGet, wire.Some(m.RequestID)
		c.counter, c.ok = m.Value.Get()
	case *wire.NotLeader:
		fits, c.to = true, redirected(m)
	}
	return fits, id
}

// setValue copies a value out of a message, once.
func (c *cacheCall) setValue(m *wire.CacheValue) {
	if c.ok = m.Value.Set; !c.ok {
		return
	}
	c.value = append(c.value, m.Value.Value...)
	if c.value == nil {
		c.value = []byte{}
	}
	c.version, c.hasVersion = m.Version.Get()
}

// cacheCalls lends cache calls.
type cacheCalls struct{ pool sync.Pool }

func (p *cacheCalls) get() *cacheCall {
	if c, ok := p.pool.Get().(*cacheCall); ok {
		return c
	}
	c := &cacheCall{ready: make(chan struct{}, 1)}
	c.req = c
	return c
}

// maxKeptCall is the largest frame buffer that a pooled call keeps.
const maxKeptCall = 64 << 10

func (p *cacheCalls) put(c *cacheCall) {
	key, frame := c.key[:0], c.frame[:0]
	if cap(frame) > maxKeptCall {
		frame = nil
	}
	*c = cacheCall{ready: c.ready, key: key, call: call{req: c, frame: frame}}
	p.pool.Put(c)
}

// do sends a call and waits for its answer, trying again as its failure
// allows. On success the call is the caller's, to be read and put back; on
// an error it is gone.
func (c *Client) do(ctx context.Context, call *cacheCall) error {
	reauths := 0
	var once error // how the only attempt ended of a request that is sent once
	err := c.retry(ctx, call.op.reads(), func(ctx context.Context) error {
		for {
			refusedHere, err := c.attemptCache(ctx, call)
			switch {
			case refusedHere && errors.Is(err, ErrUnauthenticated) && c.cfg.renewable && reauths < maxReauths:
				reauths++ // the token expired: the next stream asks for another
				continue
			case call.sent && call.op.once():
				once = err
				return nil
			}
			return err
		}
	})
	if once != nil {
		err = c.closedOr(once)
	}
	if err != nil && !call.abandoned {
		c.calls.put(call)
	}
	return err
}

// attemptCache sends a call once, and to where it is redirected (wire 15).
// refusedHere says that the error is the broker's answer to this very request.
func (c *Client) attemptCache(ctx context.Context, call *cacheCall) (refusedHere bool, err error) {
	var at *broker // nil is where everything goes
	var asked []string
	for {
		s, err := c.cacheStream(ctx, at)
		if err != nil {
			return false, err
		}
		if err := call.op.supported(s.sess.caps, s.b.addr); err != nil {
			return false, err
		}
		call.to = nil
		switch err := s.do(ctx, &call.call, call.ready); {
		case err == nil && call.to != nil:
			call.sent = false // nothing of it was applied
			asked = append(asked, s.b.addr)
			if at, err = c.redirectedFrom(call.name(), asked, call.to); err != nil {
				return true, err
			}
		case err == nil:
			return call.answered, call.err
		case !errors.Is(err, errStreamGone):
			return false, err
		}
	}
}
