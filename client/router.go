package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

const (
	// helloTimeout bounds how long an event stream may take to name itself.
	helloTimeout = 10 * time.Second
	// claimTimeout is how long a named event stream waits for its subscribe
	// to be answered.
	claimTimeout = 10 * time.Second
	// unnamedFor is how long after its death an event stream without a name
	// may be the one that a claim waits for.
	unnamedFor = time.Second
)

var errEventStreamDied = errors.New("the event stream ended before it named itself")

// An eventStream is a stream of events the broker opened, behind its hello.
type eventStream struct {
	st   transport.ReceiveStream
	in   *wire.FrameReader
	id   uint64 // of the subscription
	addr string // of the broker
}

// A router gives each event stream of a connection to the subscription whose
// id its hello names. Stream and answer may come in either order (wire 10.5),
// so streams wait for their claim and claims for their stream.
type router struct {
	cn         *conn
	maxPending int
	start      sync.Once

	mu      sync.Mutex
	pending map[uint64]*pendingStream
	claims  map[uint64]chan *eventStream // each with room for one; nil is a stream that died
	unnamed int                          // streams that died before they named themselves
	died    time.Time                    // the last of them
}

type pendingStream struct {
	es    *eventStream
	timer *time.Timer
}

func (r *router) init(cn *conn, maxPending int) {
	r.cn, r.maxPending = cn, maxPending
	r.pending = make(map[uint64]*pendingStream)
	r.claims = make(map[uint64]chan *eventStream)
}

// run starts accepting, once.
func (r *router) run() {
	r.start.Do(func() { r.cn.b.c.spawn(r.accept) })
}

// accept takes streams until the connection ends. Each hello is read on a
// goroutine of its own: a silent stream holds up nobody.
func (r *router) accept() {
	c := r.cn.b.c
	for {
		st, err := r.cn.AcceptUniStream(r.cn.Context())
		if err != nil {
			return
		}
		if !c.spawn(func() { r.hello(st) }) {
			st.CancelRead(0)
			return
		}
	}
}

// hello reads the first frame, which must be one (wire 19).
func (r *router) hello(st transport.ReceiveStream) {
	es := &eventStream{st: st, in: wire.NewFrameReader(st, r.cn.b.c.cfg.maxFrame), addr: r.cn.b.addr}
	id, err := es.hello()
	if err != nil {
		r.cn.b.c.cfg.logger.Debug("event stream dropped", "broker", r.cn.b.addr, "error", err)
		st.CancelRead(0)
		if errors.As(err, new(*transport.ResetError)) {
			r.lose()
		}
		return
	}
	es.id = id
	r.deliver(es)
}

func (es *eventStream) hello() (uint64, error) {
	es.st.SetReadDeadline(time.Now().Add(helloTimeout))
	h, payload, err := es.in.Next()
	if err != nil {
		return 0, err
	}
	if h.Flags != 0 {
		return 0, fmt.Errorf("first frame has flags %#04x, not event_stream_hello", uint16(h.Flags))
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		return 0, err
	}
	hello, ok := m.(*wire.EventStreamHello)
	if !ok {
		return 0, fmt.Errorf("first frame is %s, not event_stream_hello", m.MessageType())
	}
	return hello.SubscriptionID, es.st.SetReadDeadline(time.Time{})
}

// deliver hands the stream to its claim, or keeps it for one to come.
func (r *router) deliver(es *eventStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if claim := r.claims[es.id]; claim != nil {
		delete(r.claims, es.id)
		claim <- es
		r.giveUp()
		return
	}
	if len(r.pending) >= r.maxPending || r.pending[es.id] != nil {
		es.st.CancelRead(0)
		return
	}
	p := &pendingStream{es: es}
	p.timer = time.AfterFunc(claimTimeout, func() { r.expire(p) })
	r.pending[es.id] = p
}

// lose notes a stream that ended before its hello was read: a reset may
// overtake it.
func (r *router) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unnamed++
	r.died = time.Now()
	r.giveUp()
}

// giveUp ends the claims whose streams must be those that died unnamed:
// there are no fewer of them than claims. mu is held.
func (r *router) giveUp() {
	if r.unnamed < len(r.claims) {
		return
	}
	for id, claim := range r.claims {
		delete(r.claims, id)
		claim <- nil
		r.unnamed--
	}
}

func (r *router) expire(p *pendingStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[p.es.id] == p {
		delete(r.pending, p.es.id)
		p.es.st.CancelRead(0)
	}
}

// claim waits for the stream of a subscription.
func (r *router) claim(ctx context.Context, id uint64) (*eventStream, error) {
	r.mu.Lock()
	if p := r.pending[id]; p != nil {
		delete(r.pending, id)
		p.timer.Stop()
		r.mu.Unlock()
		return p.es, nil
	}
	claim := make(chan *eventStream, 1)
	r.claims[id] = claim
	if time.Since(r.died) > unnamedFor {
		r.unnamed = 0 // of subscribes that nobody waits for any longer
	}
	r.giveUp()
	r.mu.Unlock()

	timeout := time.NewTimer(helloTimeout)
	defer timeout.Stop()
	var err error
	select {
	case es := <-claim:
		if es == nil {
			return nil, lost("subscribe", r.cn.b.addr, RetryNow, errEventStreamDied)
		}
		return es, nil
	case <-ctx.Done():
		err = ctxError("subscribe", ctx, RetryNow)
	case <-r.cn.Context().Done():
		err = lost("subscribe", r.cn.b.addr, RetryNow, r.cn.b.c.cause(context.Cause(r.cn.Context())))
	case <-timeout.C:
		err = lost("subscribe", r.cn.b.addr, RetryNow, fmt.Errorf("no event stream for subscription %d within %v", id, helloTimeout))
	}
	r.mu.Lock()
	delete(r.claims, id)
	r.mu.Unlock()
	select {
	case es := <-claim:
		if es != nil {
			es.st.CancelRead(0)
		}
	default:
	}
	return nil, err
}
