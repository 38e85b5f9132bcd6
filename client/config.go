package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/transport/udp"
	"github.com/felixlog/felix/wire"
)

// config is what the options add up to.
type config struct {
	tenant    string
	namespace string
	token     func(context.Context) (string, error)
	renewable bool // token may give another token when asked again

	caFile            string
	caPEM             []byte
	roots             *x509.CertPool
	tls               *tls.Config
	certFile, keyFile string
	serverName        string
	alpn              bool

	logger    *slog.Logger
	pools     Pools
	windows   Windows
	udp       UDP
	reconnect ReconnectPolicy

	maxFrame      int
	inflightBytes int
	ackTimeout    time.Duration
	dialTimeout   time.Duration
	keepAlive     time.Duration
	idleTimeout   time.Duration

	ackOnCommit bool
	publishers  bool
	timestamps  bool

	// subscription buffer of FELIX_CLIENT_SUB_QUEUE_*; zero is none
	subBuffer int
	subPolicy BufferPolicy
}

func defaultConfig() config {
	return config{
		namespace: "default",
		logger:    slog.New(slog.DiscardHandler),
		pools: Pools{
			PublishConns:        1,
			PublishStreams:      4,
			CacheConns:          1,
			CacheStreams:        4,
			EventConns:          8,
			PendingEventStreams: wire.MaxPendingEventStreams,
		},
		reconnect:     ReconnectPolicy{Attempts: 5, Initial: 200 * time.Millisecond, Max: 2 * time.Second, Random: rand.Float64},
		maxFrame:      wire.MaxFramePayload,
		inflightBytes: wire.MaxClientUnackedBytes,
		ackTimeout:    wire.ClientAckTimeoutMS * time.Millisecond,
		dialTimeout:   quic.DefaultHandshakeTimeout,
		keepAlive:     2 * time.Second,
		idleTimeout:   quic.DefaultIdleTimeout,
	}
}

// fill puts the defaults into fields an option left zero.
func (c *config) fill() {
	d := defaultConfig()
	c.namespace = cmp.Or(c.namespace, d.namespace)
	if c.logger == nil {
		c.logger = d.logger
	}
	p := &c.pools
	p.PublishConns = cmp.Or(p.PublishConns, d.pools.PublishConns)
	p.PublishStreams = cmp.Or(p.PublishStreams, d.pools.PublishStreams)
	p.CacheConns = cmp.Or(p.CacheConns, d.pools.CacheConns)
	p.CacheStreams = cmp.Or(p.CacheStreams, d.pools.CacheStreams)
	p.EventConns = cmp.Or(p.EventConns, d.pools.EventConns)
	p.PendingEventStreams = cmp.Or(p.PendingEventStreams, d.pools.PendingEventStreams)
	r := &c.reconnect
	r.Attempts = cmp.Or(r.Attempts, d.reconnect.Attempts)
	r.Initial = cmp.Or(r.Initial, d.reconnect.Initial)
	r.Max = cmp.Or(r.Max, max(d.reconnect.Max, r.Initial))
	if r.Random == nil {
		r.Random = d.reconnect.Random
	}
}

// bound is one row of the table that validate checks.
type bound struct {
	name     string
	v        int64
	min, max int64
	unit     string
}

func (b bound) check() error {
	switch {
	case b.v < b.min:
		return fmt.Errorf("%s is %d%s, the least is %d%s", b.name, b.v, b.unit, b.min, b.unit)
	case b.v > b.max:
		return fmt.Errorf("%s is %d%s, the most is %d%s", b.name, b.v, b.unit, b.max, b.unit)
	}
	return nil
}

// validate reports everything that is wrong at once.
func (c *config) validate() error {
	const (
		conns   = 64
		streams = 512
		window  = 1 << 30
		frame   = 1 << 30
	)
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	table := []bound{
		{"publish connections", int64(c.pools.PublishConns), 1, conns, ""},
		{"publish streams per connection", int64(c.pools.PublishStreams), 1, streams, ""},
		{"cache connections", int64(c.pools.CacheConns), 1, conns, ""},
		{"cache streams per connection", int64(c.pools.CacheStreams), 1, streams, ""},
		{"event connections", int64(c.pools.EventConns), 1, conns, ""},
		{"pending event streams", int64(c.pools.PendingEventStreams), 1, 1 << 20, ""},
		{"event connection window", int64(c.windows.EventConn), 0, window, " bytes"},
		{"event stream window", int64(c.windows.EventStream), 0, window, " bytes"},
		{"cache connection window", int64(c.windows.CacheConn), 0, window, " bytes"},
		{"cache stream window", int64(c.windows.CacheStream), 0, window, " bytes"},
		{"maximum frame", int64(c.maxFrame), 1 << 10, frame, " bytes"},
		{"unanswered publish bytes", int64(c.inflightBytes), 1 << 10, window, " bytes"},
		{"ack timeout", ms(c.ackTimeout), 1, ms(time.Hour), " ms"},
		{"dial timeout", ms(c.dialTimeout), 1, ms(time.Hour), " ms"},
		{"idle timeout", ms(c.idleTimeout), 100, ms(time.Hour), " ms"},
		{"keep-alive period", ms(c.keepAlive), 1, ms(c.idleTimeout) / 2, " ms"},
		{"reconnect attempts", int64(c.reconnect.Attempts), 1, 1 << 20, ""},
		{"first reconnect wait", ms(c.reconnect.Initial), 0, ms(time.Hour), " ms"},
		{"longest reconnect wait", ms(c.reconnect.Max), ms(c.reconnect.Initial), ms(time.Hour), " ms"},
		{"socket poll", c.udp.Poll.Microseconds(), 0, udp.MaxPoll.Microseconds(), " us"},
		{"subscription buffer", int64(c.subBuffer), 0, 1 << 20, " batches"},
	}
	var errs []error
	for _, b := range table {
		errs = append(errs, b.check())
	}
	errs = append(errs, checkName("tenant", c.tenant), checkName("namespace", c.namespace))
	if c.token == nil {
		errs = append(errs, errors.New("no token: use WithToken or WithTokenProvider"))
	}
	if c.trusts() > 1 {
		errs = append(errs, errors.New("more than one of a CA file, a CA text and a root pool is set"))
	}
	if (c.certFile == "") != (c.keyFile == "") {
		errs = append(errs, errors.New("a client certificate needs both its certificate and its key file"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("felix client options: %w", err)
	}
	return nil
}

// trusts counts the ways in which other roots than the platform's are named.
func (c *config) trusts() int {
	n := 0
	for _, set := range []bool{c.caFile != "", len(c.caPEM) > 0, c.roots != nil} {
		if set {
			n++
		}
	}
	return n
}

// checkSeeds splits and checks the seed addresses.
func checkSeeds(seeds []string) ([]string, error) {
	var out []string
	for _, s := range seeds {
		for addr := range strings.SplitSeq(s, ",") {
			addr = strings.TrimSpace(addr)
			if addr == "" {
				continue
			}
			if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
				return nil, fmt.Errorf("felix client options: seed %q is not host:port", addr)
			}
			out = append(out, addr)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("felix client options: no seed address")
	}
	return out, nil
}

// tlsClient builds the TLS configuration; firstSeed names the server when no
// option does.
func (c *config) tlsClient(firstSeed string) (*tls.Config, error) {
	name := c.serverName
	if name == "" && c.tls != nil {
		name = c.tls.ServerName
	}
	if name == "" {
		name = defaultServerName(firstSeed)
	}
	made, err := tlsconfig.NewClient(tlsconfig.ClientOptions{
		CAFile:     c.caFile,
		CAPEM:      c.caPEM,
		Roots:      c.roots,
		CertFile:   c.certFile,
		KeyFile:    c.keyFile,
		ServerName: name,
		OfferALPN:  c.alpn,
		Now:        time.Now,
		Logger:     c.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("felix client TLS: %w", err)
	}
	if c.tls == nil {
		return made, nil
	}
	own := c.tls.Clone()
	own.MinVersion = tls.VersionTLS13
	own.ServerName = name
	if c.trusts() > 0 {
		own.RootCAs = made.RootCAs
	}
	if c.certFile != "" {
		own.Certificates, own.GetClientCertificate = made.Certificates, made.GetClientCertificate
	}
	if c.alpn {
		own.NextProtos = made.NextProtos
	}
	return own, nil
}

// defaultServerName is the seed's host, or localhost when that is an IP
// address: a certificate for a bare address is the exception.
func defaultServerName(seed string) string {
	host, _, err := net.SplitHostPort(seed)
	if err != nil {
		return "localhost"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "localhost"
	}
	return host
}

func checkName(kind, name string) error {
	if err := wire.ValidateName(kind, name); err != nil {
		return nameError(kind, name, err)
	}
	return nil
}

func nameError(kind, name string, err error) error {
	var w *wire.NameError
	if errors.As(err, &w) {
		return &NameError{Kind: kind, Name: name, Err: errors.New(w.Problem)}
	}
	return &NameError{Kind: kind, Name: name, Err: err}
}
