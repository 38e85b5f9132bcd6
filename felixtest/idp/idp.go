// Package idp is a small OpenID Connect provider for tests: real HTTP on
// loopback, real signatures, and tokens for whoever the test says. It asks
// nobody for a password, so it must never be reachable from outside.
//
//	p := idp.Start(t)
//	token := p.Token(idp.Claims{"sub": "alice", "groups": []string{"staff"}})
//
// It publishes a discovery document and its keys, turns its keys over when it is
// told to, grants tokens to clients and devices (RFC 6749 4.4, RFC 8628), and
// fails in the ways that real providers do ([Provider.Break]).
package idp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// DefaultAudience is whom tokens are for, where nothing else is said.
const DefaultAudience = "felix"

// Claims are the body of a token.
type Claims map[string]any

// Options of a provider. The zero value is usual.
type Options struct {
	// Addr to listen on, which must be a loopback one; empty is a free port.
	Addr string
	// Algorithm of the keys: ES256, where it is empty, RS256, RS384, RS512,
	// PS256, PS384 or PS512.
	Algorithm string
	Audience  string           // DefaultAudience where it is empty
	Lifetime  time.Duration    // of tokens; 0 is five minutes
	Now       func() time.Time // nil is time.Now
	// Clients are the secrets of those who may have tokens for themselves, by
	// client id.
	Clients map[string]string
	// AutoApprove, if set, approves devices at once, as the subject that these
	// claims say.
	AutoApprove Claims
}

// A Provider serves until it is closed. It is safe for concurrent use.
type Provider struct {
	o      Options
	issuer string
	server *http.Server
	served chan struct{}
	closed chan struct{}

	mu       sync.Mutex
	keys     []*signingKey // all published, oldest first; the last one signs
	fault    Fault
	repaired chan struct{} // closed when the fault ends
	requests map[string]int
	devices  map[string]*device // by device code
}

// TB is what [Start] needs of a test.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start runs a provider that ends with the test.
func Start(t TB, options ...Options) *Provider {
	t.Helper()
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	p, err := New(o)
	if err != nil {
		t.Fatalf("start provider: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// New runs a provider. Close ends it.
func New(o Options) (*Provider, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Audience == "" {
		o.Audience = DefaultAudience
	}
	if o.Lifetime == 0 {
		o.Lifetime = 5 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	key, err := newKey(o.Algorithm)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if addr, ok := listener.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return nil, errors.Join(errors.New("a provider that gives tokens to everybody listens on loopback only"), listener.Close())
	}
	p := &Provider{
		o: o, issuer: "http://" + listener.Addr().String(), keys: []*signingKey{key},
		served: make(chan struct{}), closed: make(chan struct{}), repaired: make(chan struct{}),
		requests: make(map[string]int), devices: make(map[string]*device),
	}
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // ends with ErrServerClosed, by Close
	}()
	return p, nil
}

// Close ends the provider and waits until it is gone. A second call does
// nothing.
func (p *Provider) Close() {
	p.mu.Lock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close() // what did not end in time is cut off
	}
	<-p.served
}

// Issuer is the provider's name and base URL.
func (p *Provider) Issuer() string { return p.issuer }

// DiscoveryURL is where its discovery document is.
func (p *Provider) DiscoveryURL() string { return p.issuer + discoveryPath }

// JWKSURL is where its keys are.
func (p *Provider) JWKSURL() string { return p.issuer + keysPath }

// Audience is whom its tokens are for.
func (p *Provider) Audience() string { return p.o.Audience }

// Requests counts how often a path was asked for, such as "/jwks.json".
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// KeyRequests counts how often the keys were fetched.
func (p *Provider) KeyRequests() int { return p.Requests(keysPath) }

// DiscoveryRequests counts how often the discovery document was fetched.
func (p *Provider) DiscoveryRequests() int { return p.Requests(discoveryPath) }
