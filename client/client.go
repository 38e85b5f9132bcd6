package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/udp"
	"github.com/felixlog/felix/wire"
)

// A Client is a connection to Felix: to one broker, or to a cluster of them.
// It is safe for concurrent use.
type Client struct {
	cfg    config
	dialer *quic.Dialer

	// ctx ends when the client is closed.
	ctx    context.Context
	cancel context.CancelFunc

	endpoints  endpoints
	entry      atomic.Pointer[broker] // where requests go by default
	connecting chan struct{}          // one token: held by whoever looks for an entry

	routes   routeTable
	bufs     bufferPool
	requests requestPool
	inflight *budget // bytes of unanswered publishes
	calls    cacheCalls
	ids      atomic.Uint64 // request ids outside publish streams

	mu      sync.Mutex
	closing bool
	wg      sync.WaitGroup // every goroutine of the client
}

// Dial connects to the first seed ("host:port") that answers, authenticates
// there, and learns what the broker can do; further brokers of a cluster are
// discovered. Seeds are tried in order. An element may also list several
// addresses with commas between them.
//
// ctx bounds Dial only. The error is an [*UnreachableError] when no broker
// could be reached, or an [*Error] when one refused.
func Dial(ctx context.Context, seeds []string, opts ...Option) (*Client, error) {
	cfg := defaultConfig()
	var errs []error
	for _, o := range opts {
		errs = append(errs, o.applyClient(&cfg))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("felix client options: %w", err)
	}
	cfg.fill()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	addrs, err := checkSeeds(seeds)
	if err != nil {
		return nil, err
	}
	c, err := newClient(cfg, addrs)
	if err != nil {
		return nil, err
	}
	if err := c.retry(ctx, true, func(ctx context.Context) error {
		_, err := c.broker(ctx)
		return err
	}); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(cfg config, seeds []string) (*Client, error) {
	tls, err := cfg.tlsClient(seeds[0])
	if err != nil {
		return nil, err
	}
	dialer, err := quic.NewDialer(quic.DialOptions{
		ConnOptions: quic.ConnOptions{
			IdleTimeout:      cfg.idleTimeout,
			KeepAlive:        cfg.keepAlive,
			HandshakeTimeout: cfg.dialTimeout,
		},
		TLS:    tls,
		Socket: udp.Options{DisableGRO: cfg.udp.DisableGRO, Poll: cfg.udp.Poll},
		Logger: cfg.logger,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg:        cfg,
		dialer:     dialer,
		connecting: make(chan struct{}, 1),
		inflight:   newBudget(cfg.inflightBytes),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.requests.bufs = &c.bufs
	for _, addr := range seeds {
		c.endpoints.add(c, addr)
	}
	return c, nil
}

// spawn runs f on a goroutine that Close waits for. It refuses once the
// client is closing.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// Close ends every call, subscription and connection at once. Publishes not
// answered yet fail with an unknown outcome, and unacknowledged ones may not
// have left: [Client.Drain] first where that matters. Close may be called
// more than once, and from any goroutine that is not a callback of the
// client.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.cancel()
	for _, b := range c.endpoints.all() {
		b.close("client closed")
	}
	err := c.dialer.Close()
	c.wg.Wait()
	return err
}

// Flush waits until every publish so far is answered and every
// unacknowledged one was read by the broker. Its error is ctx's, or that
// unacknowledged records may be lost; acknowledged publishes report to their
// own callers.
func (c *Client) Flush(ctx context.Context) error {
	if err := c.inflight.waitIdle(ctx); err != nil {
		return err
	}
	for _, rt := range c.routes.all() {
		if err := rt.drainUnacked(ctx); err != nil {
			return err
		}
	}
	for _, b := range c.endpoints.all() {
		if err := b.drainUnacked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Drain is [Client.Flush] and then [Client.Close]. When the flush fails the
// client stays open.
func (c *Client) Drain(ctx context.Context) error {
	if c.ctx.Err() == nil {
		if err := c.Flush(ctx); err != nil {
			return err
		}
	}
	return c.Close()
}

// Endpoints lists the brokers the client knows: the seeds in their order,
// then what discovery added.
func (c *Client) Endpoints() []string {
	var out []string
	for _, b := range c.endpoints.all() {
		out = append(out, b.addr)
	}
	return out
}

// connected watches a new connection for its end.
func (c *Client) connected(cn *conn) {
	c.endpoints.ok(cn.b)
	c.cfg.logger.Debug("connected", "broker", cn.b.addr)
	context.AfterFunc(cn.Context(), func() {
		if c.ctx.Err() != nil {
			return
		}
		c.endpoints.failed(cn.b, time.Now())
		c.cfg.logger.Warn("connection lost", "broker", cn.b.addr, "error", context.Cause(cn.Context()))
	})
}

// broker gives the broker that requests go to by default: the one in use as
// long as it is connected, else the first that can be connected to. Brokers
// that refuse the credentials end the search: others would refuse too.
func (c *Client) broker(ctx context.Context) (*broker, error) {
	if b := c.entry.Load(); b != nil && b.alive() != nil {
		return b, nil
	}
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-ctx.Done():
		return nil, ctxError("connect", ctx, RetryNow)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	if b := c.entry.Load(); b != nil && b.alive() != nil {
		return b, nil
	}
	var (
		errs      []error
		tried     []string
		permanent = true
	)
	for _, b := range c.endpoints.candidates(time.Now()) {
		_, caps, err := b.connect(ctx)
		if err == nil {
			c.entry.Store(b)
			c.discover(ctx, b, caps)
			return b, nil
		}
		if ctx.Err() != nil || c.ctx.Err() != nil || errors.Is(err, ErrUnauthenticated) || errors.Is(err, ErrForbidden) {
			return nil, c.closedOr(err)
		}
		c.endpoints.failed(b, time.Now())
		errs, tried = append(errs, err), append(tried, b.addr)
		permanent = permanent && !IsRetryable(err)
	}
	return nil, &UnreachableError{Endpoints: tried, Err: errors.Join(errs...), permanent: permanent}
}

// closedOr is ErrClosed once the client is closed, else err.
func (c *Client) closedOr(err error) error {
	if err != nil && c.ctx.Err() != nil && !IsOutcomeUnknown(err) {
		return ErrClosed
	}
	return err
}

// discover asks b for the brokers of its cluster. Failing is no failure of
// what the caller wants.
func (c *Client) discover(ctx context.Context, b *broker, caps *capabilities) {
	if !caps.Has(wire.FeatureTopology) {
		return
	}
	if _, err := c.topologyOf(ctx, b); err != nil {
		c.cfg.logger.Warn("topology unknown", "broker", b.addr, "error", err)
	}
}
