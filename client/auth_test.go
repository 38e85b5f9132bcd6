package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/wire"
)

// tokens is a provider that gives "token-1", "token-2", ... a new one each
// time renew was called.
type tokens struct{ n atomic.Int64 }

func newTokens() *tokens { t := new(tokens); t.n.Store(1); return t }

func (t *tokens) provider(context.Context) (string, error) {
	return fmt.Sprintf("token-%d", t.n.Load()), nil
}

func (t *tokens) renew() { t.n.Add(1) }

func refuseToken(code bool) wire.Message {
	m := &wire.Error{Message: "auth failed"}
	if code {
		m.Code, m.Retry = wire.Some("unauthenticated"), wire.Some("fatal")
	}
	return m
}

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	for _, coded := range []bool{true, false} {
		p := newPeer(t, ackAll)
		var asked atomic.Int64
		p.setAnswer(func(a *wire.Auth) wire.Message {
			if a.Token != "good" {
				return refuseToken(coded)
			}
			return fullOffer(a)
		})
		c := dial(t, []string{p.addr()}, WithTokenProvider(func(context.Context) (string, error) {
			if asked.Add(1)%2 == 1 {
				return "stale", nil
			}
			return "good", nil
		}))
		if _, err := c.Publish(testContext(t), "s", nil); err != nil {
			t.Errorf("coded %v: %v", coded, err)
		}
	}
}

func TestRefusedTokenIsFinal(t *testing.T) {
	p := newPeer(t, ackAll)
	p.setAnswer(func(*wire.Auth) wire.Message { return refuseToken(true) })
	provider := newTokens()
	for name, opt := range map[string]Option{
		"fixed":          WithToken("bad"),
		"same again":     WithTokenProvider(provider.provider),
		"provider fails": WithTokenProvider(func(context.Context) (string, error) { return "", errors.New("vault sealed") }),
	} {
		_, err := tryDial(t, []string{p.addr()}, opt)
		if !errors.Is(err, ErrUnauthenticated) || IsRetryable(err) {
			t.Errorf("%s: error %v, want unauthenticated", name, err)
		}
	}
	if n := p.authCount(); n != 2 {
		t.Errorf("%d auths were sent, want 2", n)
	}
}

// expiring is a peer whose streams refuse everything once their token is not
// the current one.
type expiring struct {
	*peer
	valid atomic.Pointer[string]

	mu  sync.Mutex
	got []string // accepted payloads
}

func newExpiring(t *testing.T) *expiring {
	e := &expiring{}
	e.expire("token-1")
	e.peer = newPeer(t, e.serve)
	e.setAnswer(func(a *wire.Auth) wire.Message {
		if !e.ok(a) {
			return refuseToken(true)
		}
		return fullOffer(a)
	})
	return e
}

func (e *expiring) expire(now string) { e.valid.Store(&now) }

func (e *expiring) ok(a *wire.Auth) bool { return a.Token == *e.valid.Load() }

var expired = wire.Failure{Code: wire.CodeUnauthenticated, Class: wire.Fatal, Message: "token expired"}

func (e *expiring) serve(s *peerStream) {
	for {
		h, payload, ok := s.next()
		if !ok {
			s.CloseWrite()
			return
		}
		if h.Flags == 0 {
			if !e.message(s, payload) {
				return
			}
			continue
		}
		var m wire.Publish
		if err := wire.ParsePublish(h.Flags, payload, &m); err != nil {
			e.t.Error(err)
			return
		}
		if !e.ok(s.auth) {
			s.ack(s.auth.Offer().FailedAck(m.RequestID, expired))
			continue
		}
		e.mu.Lock()
		e.got = append(e.got, string(m.Block[8:]))
		e.mu.Unlock()
		s.ack(wire.Ack{RequestID: m.RequestID})
	}
}

// message serves cache requests, refusing as a broker does: with an error
// that ends the stream.
func (e *expiring) message(s *peerStream, payload []byte) bool {
	m, err := wire.ParseMessage(payload)
	if err != nil {
		e.t.Error(err)
		return false
	}
	if !e.ok(s.auth) {
		s.send(s.auth.Offer().Error(expired))
		s.CloseWrite()
		return false
	}
	switch m := m.(type) {
	case *wire.CacheGet:
		s.send(&wire.CacheValue{Tenant: m.Tenant, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key,
			Value: wire.Some([]byte("v")), RequestID: m.RequestID})
	case *wire.CachePut:
		s.send(&wire.CacheOK{RequestID: m.RequestID.Value})
	}
	return true
}

func TestPublishingOutlivesTheToken(t *testing.T) {
	e := newExpiring(t)
	tk := newTokens()
	c := dial(t, []string{e.addr()}, WithTokenProvider(tk.provider))
	ctx := testContext(t)
	pub := c.Publisher("s")
	var want []string
	const n = 400
	for i := range n {
		if i == n/3 || i == 2*n/3 {
			tk.renew()
			e.expire(fmt.Sprintf("token-%d", tk.n.Load()))
		}
		payload := fmt.Sprintf("%04d", i)
		want = append(want, payload)
		if err := pub.SendFunc(ctx, func(_ Ack, err error) {
			if err != nil {
				t.Errorf("batch %d: %v", i, err)
			}
		}, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.got, want) {
		t.Errorf("the broker accepted %d records, not the %d in their order", len(e.got), n)
	}
	if conns := e.connCount(); conns != 1 {
		t.Errorf("%d connections, want 1", conns)
	}
}

func TestCacheOutlivesTheToken(t *testing.T) {
	e := newExpiring(t)
	tk := newTokens()
	c := dial(t, []string{e.addr()}, WithTokenProvider(tk.provider))
	ctx := testContext(t)
	k := c.Cache("k")
	for round := range 3 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if v, ok, err := k.Get(ctx, "x"); err != nil || !ok || string(v) != "v" {
						t.Errorf("round %d: get: %q %v %v", round, v, ok, err)
					}
					if err := k.Put(ctx, "x", []byte("v")); err != nil {
						t.Errorf("round %d: put: %v", round, err)
					}
				}
			})
		}
		wg.Wait()
		tk.renew()
		e.expire(fmt.Sprintf("token-%d", tk.n.Load()))
	}
}

func TestExpiryWithoutAProviderIsTyped(t *testing.T) {
	e := newExpiring(t)
	c := dial(t, []string{e.addr()}, WithToken("token-1"))
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Cache("k").Get(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	e.expire("another")
	_, err := c.Publish(ctx, "s", []byte("x"))
	if !errors.Is(err, ErrUnauthenticated) || IsOutcomeUnknown(err) || IsRetryable(err) {
		t.Errorf("publish: %v", err)
	}
	if _, _, err := c.Cache("k").Get(ctx, "x"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("get: %v", err)
	}
}

// TestErrorFrameEndsThePublishStream: a broker ends the stream with an error
// instead of answering each publish.
func TestErrorFrameEndsThePublishStream(t *testing.T) {
	tk := newTokens()
	var mu sync.Mutex
	var got []string
	p := newPeer(t, func(s *peerStream) {
		for i := 0; ; i++ {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			if s.auth.Token == "token-1" && i == 3 {
				tk.renew()
				s.send(s.auth.Offer().Error(expired))
				s.CloseWrite()
				s.CancelRead(0)
				return
			}
			mu.Lock()
			got = append(got, string(m.Block[8:]))
			mu.Unlock()
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()}, WithTokenProvider(tk.provider))
	pub := c.Publisher("s")
	var want []string
	for i := range 20 {
		payload := fmt.Sprintf("%02d", i)
		want = append(want, payload)
		if _, err := pub.Send(testContext(t), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
