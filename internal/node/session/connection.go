package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/transport"
)

// A connection is the part of a client connection that its streams share.
type connection struct {
	srv    *Server
	conn   transport.Conn
	number uint64 // grows with each connection accepted

	budget        *admission.Connection // publish bytes, per identity and in total
	preauth       chan struct{}         // slots for streams that may be read before auth
	authenticated atomic.Bool
	owed          atomic.Int64 // answers that wait for a commit or their turn, and polls
	polls         atomic.Int64 // of groups, under way
	answers       answerBytes  // of records, not yet with the carrier

	mu         sync.Mutex
	identities map[identityKey]*identity
	subsTotal  int
	events     map[*eventStream]struct{}
	draining   bool
	streams    sync.WaitGroup
}

type identityKey struct{ tenant, subject string }

// An identity is a tenant and subject on one connection; its budgets and its
// subscription limit are apart from those of other identities there.
type identity struct {
	key     identityKey
	publish *admission.Identity
	holders int // streams and subscriptions
	subs    int
}

func newConnection(s *Server, conn transport.Conn) *connection {
	return &connection{
		srv:        s,
		conn:       conn,
		number:     s.nextConnection.Add(1),
		budget:     s.broker.NewConnection(),
		preauth:    make(chan struct{}, s.cfg.PreauthMaxStreams),
		identities: make(map[identityKey]*identity),
		events:     make(map[*eventStream]struct{}),
	}
}

func (c *connection) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopTimer := c.startAuthDeadline()
	defer stopTimer()

	c.streams.Add(1)
	go func() {
		defer c.streams.Done()
		c.acceptUni(ctx)
	}()
	c.acceptControl(ctx)
	cancel()
	c.streams.Wait()
	c.budget.Close()
}

// startAuthDeadline closes a connection on which nothing authenticates in
// time (wire 2.5).
func (c *connection) startAuthDeadline() (stop func()) {
	if c.srv.cfg.AuthTimeout <= 0 {
		return func() {}
	}
	cancel := c.srv.clock.AfterFunc(c.srv.cfg.AuthTimeout, func() {
		if c.authenticated.Load() {
			return
		}
		c.srv.metrics.Connections.AuthTimeouts.Inc()
		_ = c.conn.Close(codeAuthTimeout, "authentication timeout")
	})
	return func() { cancel() }
}

func (c *connection) acceptControl(ctx context.Context) {
	for {
		st, err := c.conn.AcceptStream(ctx)
		if err != nil {
			return
		}
		c.streams.Add(1)
		go func() {
			defer c.streams.Done()
			newControl(c, st).serve(ctx)
		}()
	}
}

func (c *connection) acceptUni(ctx context.Context) {
	for {
		st, err := c.conn.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		c.streams.Add(1)
		go func() {
			defer c.streams.Done()
			newIngest(c, st).serve(ctx)
		}()
	}
}

// enterPreauth waits for one of the connection's slots for streams that have
// not authenticated; leave gives it back.
func (c *connection) enterPreauth(ctx context.Context) (leave func(), ok bool) {
	select {
	case c.preauth <- struct{}{}:
		return sync.OnceFunc(func() { <-c.preauth }), true
	case <-ctx.Done():
		return nil, false
	case <-c.conn.Context().Done():
		return nil, false
	}
}

// identify returns the shared state of p's identity on this connection and
// holds it; forget lets go. A connection keeps no more identities than its
// streams and subscriptions have.
func (c *connection) identify(p *auth.Principal) *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := identityKey{p.Tenant, p.Subject}
	id := c.identities[key]
	if id == nil {
		id = &identity{key: key, publish: c.budget.Identity(p.Tenant, p.Subject)}
		c.identities[key] = id
	}
	id.holders++
	return id
}

func (c *connection) forget(id *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id.holders--; id.holders == 0 {
		delete(c.identities, id.key)
		id.publish.Close()
	}
}

// reserveSubscription takes a place within the limits of the identity and
// the connection (broker 7.5) and holds the identity.
func (c *connection) reserveSubscription(id *identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id.subs >= c.srv.cfg.MaxSubscriptions || c.subsTotal >= c.srv.cfg.MaxSubscriptionsAll {
		return false
	}
	id.subs++
	id.holders++
	c.subsTotal++
	return true
}

func (c *connection) releaseSubscription(id *identity) {
	c.mu.Lock()
	id.subs--
	c.subsTotal--
	c.mu.Unlock()
	c.forget(id)
}

// addEvents registers an event stream; false while draining.
func (c *connection) addEvents(e *eventStream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	if len(c.events) == 0 {
		c.srv.metrics.Subscribe.ActiveConnections.Inc()
	}
	c.events[e] = struct{}{}
	return true
}

func (c *connection) removeEvents(e *eventStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.events[e]; !ok {
		return
	}
	delete(c.events, e)
	if len(c.events) == 0 {
		c.srv.metrics.Subscribe.ActiveConnections.Dec()
	}
}

// endEvents asks every event stream to deliver what is queued by the given
// time and end, and refuses new ones.
func (c *connection) endEvents(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for e := range c.events {
		e.stop(until)
	}
}

// awaitEvents waits until no event stream is left, or ctx ends.
func (c *connection) awaitEvents(ctx context.Context) bool {
	for {
		c.mu.Lock()
		var one *eventStream
		for e := range c.events {
			one = e
			break
		}
		c.mu.Unlock()
		if one == nil {
			return true
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return false
		}
	}
}
