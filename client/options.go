package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"time"
)

// An Option configures a [Client]. Options of single calls have their own
// types ([PublishOption], [SubscribeOption], [CacheOption], [PutOption]), so
// that a misplaced one does not compile.
type Option interface{ applyClient(*config) error }

type clientOption func(*config) error

func (f clientOption) applyClient(c *config) error { return f(c) }

func set(f func(*config)) Option {
	return clientOption(func(c *config) error { f(c); return nil })
}

// WithTenant names the tenant; it must equal the token's. Required.
func WithTenant(tenant string) Option { return set(func(c *config) { c.tenant = tenant }) }

// WithNamespace sets the namespace that stream and cache names live in when
// a call does not say otherwise ([InNamespace]). The default is "default".
func WithNamespace(namespace string) Option {
	return set(func(c *config) { c.namespace = namespace })
}

// WithToken sets a fixed token. A client that should outlive its token
// wants [WithTokenProvider].
func WithToken(token string) Option {
	return set(func(c *config) {
		c.token = func(context.Context) (string, error) { return token, nil }
		c.renewable = false
	})
}

// WithTokenProvider sets the function asked for a token whenever a stream is
// opened, from any goroutine; it should cache. When the broker refuses a
// token the provider is asked once more, and a different token is tried;
// when a token expires on open streams the client authenticates anew and
// carries on. A provider's error ends the call that needed the token.
func WithTokenProvider(provider func(ctx context.Context) (string, error)) Option {
	return set(func(c *config) { c.token = provider; c.renewable = true })
}

// WithCAFile trusts the certificates of a PEM file instead of the platform's.
func WithCAFile(path string) Option { return set(func(c *config) { c.caFile = path }) }

// WithCAPEM trusts the certificates of a PEM text instead of the platform's.
func WithCAPEM(pem []byte) Option { return set(func(c *config) { c.caPEM = pem }) }

// WithRootCAs trusts pool instead of the platform's roots.
func WithRootCAs(pool *x509.CertPool) Option { return set(func(c *config) { c.roots = pool }) }

// WithTLSConfig starts from a TLS configuration of your own; the other TLS
// options still apply on top of a copy of it. TLS 1.3 is required anyway.
func WithTLSConfig(cfg *tls.Config) Option { return set(func(c *config) { c.tls = cfg }) }

// WithClientCertificate presents a certificate (mutual TLS), read from PEM
// files.
func WithClientCertificate(certFile, keyFile string) Option {
	return set(func(c *config) { c.certFile, c.keyFile = certFile, keyFile })
}

// WithServerName sets the name every broker's certificate must carry,
// discovered brokers included. The default is the host of the first seed, or
// "localhost" when that is an IP address.
func WithServerName(name string) Option { return set(func(c *config) { c.serverName = name }) }

// WithALPN offers the protocol "felix/1" in the handshake, which a broker
// may insist on. The default is to offer none (wire 2.1).
func WithALPN() Option { return set(func(c *config) { c.alpn = true }) }

// WithLogger sets where the client reports reconnects and other events worth
// a line. The default is silence.
func WithLogger(l *slog.Logger) Option { return set(func(c *config) { c.logger = l }) }

// WithPools sets how connections and streams are shared.
func WithPools(p Pools) Option { return set(func(c *config) { c.pools = p }) }

// WithWindows sets the QUIC receive windows.
func WithWindows(w Windows) Option { return set(func(c *config) { c.windows = w }) }

// WithReconnect sets the policy for lost and failed connections.
func WithReconnect(p ReconnectPolicy) Option { return set(func(c *config) { c.reconnect = p }) }

// WithMaxFrame bounds the payload of a frame in bytes, both received and
// sent. The default is 16 MiB, the broker's own bound.
func WithMaxFrame(bytes int) Option { return set(func(c *config) { c.maxFrame = bytes }) }

// WithPublishInflight bounds the bytes of published batches that are not
// answered yet, over the whole client. Publishing waits at the bound. The
// default is 4 MiB.
func WithPublishInflight(bytes int) Option {
	return set(func(c *config) { c.inflightBytes = bytes })
}

// WithAckTimeout bounds how long an answer to a publish or cache request is
// waited for before its stream is given up. The default is 30 s.
func WithAckTimeout(d time.Duration) Option { return set(func(c *config) { c.ackTimeout = d }) }

// WithDialTimeout bounds one attempt to connect to one broker. The default
// is 5 s.
func WithDialTimeout(d time.Duration) Option { return set(func(c *config) { c.dialTimeout = d }) }

// WithUDP tunes the socket.
func WithUDP(u UDP) Option { return set(func(c *config) { c.udp = u }) }

// WithKeepAlive sets the QUIC keep-alive period and the idle timeout after
// which a silent connection counts as lost. The defaults are 2 s and 6 s
// (wire 2.2).
func WithKeepAlive(period, idle time.Duration) Option {
	return set(func(c *config) { c.keepAlive, c.idleTimeout = period, idle })
}

// WithAckOnCommit asks the broker to answer publishes after the write rather
// than on acceptance, so that acks carry offsets wherever a log exists
// (wire 9.2).
func WithAckOnCommit() Option { return set(func(c *config) { c.ackOnCommit = true }) }

// WithPublishers asks for the publisher of each record ([Event.Publisher]).
func WithPublishers() Option { return set(func(c *config) { c.publishers = true }) }

// WithTimestamps asks for the append time of each record ([Event.Time]).
func WithTimestamps() Option { return set(func(c *config) { c.timestamps = true }) }

// WithEnvironment reads settings from environment variables in the form of
// os.Environ: the tuning variables FELIX_PUB_CONN_POOL,
// FELIX_PUB_STREAMS_PER_CONN, FELIX_PUB_SHARD_STREAMS,
// FELIX_PUBLISH_INFLIGHT_BYTES, FELIX_CACHE_CONN_POOL,
// FELIX_CACHE_STREAMS_PER_CONN, FELIX_EVENT_CONN_POOL,
// FELIX_CLIENT_SUB_QUEUE_CAPACITY, FELIX_CLIENT_SUB_QUEUE_POLICY,
// FELIX_{EVENT,CACHE}_{CONN,STREAM}_RECV_WINDOW,
// FELIX_EVENT_ROUTER_MAX_PENDING, FELIX_MAX_FRAME_BYTES, FELIX_KEEPALIVE_MS
// and FELIX_MAX_IDLE_TIMEOUT_MS; and, for what connects, FELIX_AUTH_TENANT,
// FELIX_NAMESPACE, FELIX_AUTH_TOKEN, FELIX_AUTH_TOKEN_FILE, FELIX_CA_FILE,
// FELIX_CLIENT_CERT_FILE, FELIX_CLIENT_KEY_FILE and FELIX_SERVER_NAME.
// Options after this one override it.
func WithEnvironment(environ []string) Option {
	return clientOption(func(c *config) error { return c.applyEnvironment(environ) })
}

// Pools says how many connections and streams a client keeps to one broker.
// All are opened when first needed. Zero fields mean the default.
type Pools struct {
	// PublishConns is the number of connections that carry publishes
	// (FELIX_PUB_CONN_POOL). Default 1.
	PublishConns int
	// PublishStreams is the number of long-lived streams for publishes on
	// each of those connections (FELIX_PUB_STREAMS_PER_CONN, or
	// FELIX_PUB_SHARD_STREAMS). Shards are spread over them, and a shard
	// always uses one. Default 4.
	PublishStreams int
	// CacheConns is the number of connections that carry cache requests
	// (FELIX_CACHE_CONN_POOL). Default 1.
	CacheConns int
	// CacheStreams is the number of long-lived cache streams on each of
	// those connections (FELIX_CACHE_STREAMS_PER_CONN). Default 4.
	CacheStreams int
	// EventConns is the most connections that carry subscriptions
	// (FELIX_EVENT_CONN_POOL); a further one is opened only when the ones at
	// hand are full. Default 8.
	EventConns int
	// PendingEventStreams bounds, per connection, the event streams that
	// arrived before the answer to their subscribe
	// (FELIX_EVENT_ROUTER_MAX_PENDING). Default 16384.
	PendingEventStreams int
}

// Windows are QUIC receive windows in bytes. They bound what a slow
// application leaves in memory: the windows of each kind of connection times
// the number of such connections. Zero fields mean the carrier's default.
type Windows struct {
	// EventConn and EventStream are those of connections with subscriptions
	// (FELIX_EVENT_CONN_RECV_WINDOW, FELIX_EVENT_STREAM_RECV_WINDOW).
	EventConn, EventStream int
	// CacheConn and CacheStream are those of cache connections
	// (FELIX_CACHE_CONN_RECV_WINDOW, FELIX_CACHE_STREAM_RECV_WINDOW).
	CacheConn, CacheStream int
}

// UDP tunes the client's socket.
type UDP struct {
	// DisableGRO turns off receive coalescing by the kernel.
	DisableGRO bool
	// Poll lets the receive loop spin this long before it parks, after
	// recent traffic. It takes most of the wake-up time off a lone round
	// trip where a processor core is spare. Zero is off.
	Poll time.Duration
}

// A Random is a source of uniform numbers in [0, 1).
type Random func() float64

// A ReconnectPolicy says how a client retries what may be retried: lost
// connections, and requests that were not applied.
type ReconnectPolicy struct {
	// Attempts is the number of tries of one call, the first included.
	// Default 5.
	Attempts int
	// Initial is the ceiling of the first wait, doubling up to Max. The wait
	// itself is uniform between zero and the ceiling ("full jitter").
	// Defaults 200 ms and 2 s.
	Initial, Max time.Duration
	// Random is the source of the jitter; nil for the runtime's.
	Random Random
}
