// Package session serves the client protocol: one request loop per
// bidirectional stream, one loop per publish-only stream, and one feeder per
// subscription (wire 8, broker 2).
//
// A connection carries streams of one or several identities. Every stream
// authenticates on its own; its rights are decided once a name and cached
// with the handle they lead to. A peer's mistakes end its stream, never its
// connection, and cost nobody else.
package session

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// Application codes of closes and resets (wire 2.4).
const (
	codeNone        = 0
	codeAuthTimeout = 1
	codeStopped     = 1
)

// Config is what a server needs to know; the limits are those of broker 2.2,
// 2.3, 6.2, 7 and wire 18.
type Config struct {
	MaxFrameBytes        int
	PreauthMaxFrameBytes int
	PreauthMaxStreams    int
	AuthTimeout          time.Duration // 0: a connection may wait for ever
	FrameReadTimeout     time.Duration // longest pause inside a frame
	ReplyWriteTimeout    time.Duration // longest a blocked answer may take

	PublishWindow    int           // acked publishes outstanding per stream; 0 grants no pipeline
	MaxOutstanding   int           // the same for clients without the pipeline
	QueueWait        time.Duration // a publish that found no room waits this long
	AckOnCommit      bool          // in-memory streams, too
	RecordPublishers bool          // keep with durable batches who published them
	IngressWait      bool          // unacked publishes wait for room instead of being shed
	AckWait          time.Duration
	EventMaxEvents   int
	EventMaxBytes    int
	EventMaxDelay    time.Duration
	SingleEvent      bool // one event a frame, at once (broker 7.6)
	MaxBytesPerSend  int  // bytes a feeder gathers before it writes

	MaxSubscriptions    int // per identity and connection
	MaxSubscriptionsAll int // per connection
	WatchQueue          int // changes that may wait for one watch

	MaxReadRecords int // of one stream_read

	Storage bool // the broker has logs: what needs one is served

	Directory Directory // nil: the node stands alone

	EnforceExpiry   bool // decision 8: rights end at token expiry plus ExpiryLeeway
	BindSubject     bool // the token's subject must match the client certificate
	ListenerPorts   []uint16
	AutoCreate      bool    // streams and caches appear on first use
	AutoCreateLimit int     // how many may appear so
	Create          Creator // asked before they do; nil is not
	ControlDrain    time.Duration
	Offer           wire.Offer // what this node advertises
}

// A Server serves the connections of all listeners of one node.
type Server struct {
	cfg     Config
	broker  *broker.Broker
	verify  *auth.Verifier
	metrics *telemetry.Metrics
	clock   broker.Clock
	log     *slog.Logger

	nextSubscription atomic.Uint64
	nextConnection   atomic.Uint64
	draining         atomic.Bool
	drained          context.Context // ends with errDrained when a drain begins
	drain            context.CancelCauseFunc
	inflight         atomic.Int64 // requests being served
	served           atomic.Int64 // requests served since the start

	keySeed maphash.Seed    // of the keys being written on a stream
	noWait  context.Context // has ended: what waits for it does not wait

	tenants tenants

	creating sync.Mutex // held while something appears on first use
	created  int        // guarded by creating

	mu    sync.Mutex
	conns map[*connection]struct{}
	idle  sync.WaitGroup // connections being served
}

// NewServer builds a server over b. Nothing runs until ServeConn.
func NewServer(cfg Config, b *broker.Broker, v *auth.Verifier, m *telemetry.Metrics, clock broker.Clock, log *slog.Logger) *Server {
	noWait, end := context.WithCancel(context.Background())
	end()
	drained, drain := context.WithCancelCause(context.Background())
	s := &Server{drained: drained, drain: drain, noWait: noWait, cfg: cfg, broker: b, verify: v, metrics: m, clock: clock, log: log, keySeed: maphash.MakeSeed(), conns: make(map[*connection]struct{})}
	b.OnTenantRemoved(s.tenants.removed)
	return s
}

// ServeConn serves conn until it ends. It returns after the last of the
// connection's goroutines.
func (s *Server) ServeConn(ctx context.Context, conn transport.Conn) {
	c := newConnection(s, conn)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.idle.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.idle.Done()
	}()
	c.serve(ctx)
}

// Inflight is the number of requests being served.
func (s *Server) Inflight() int64 { return s.inflight.Load() }
