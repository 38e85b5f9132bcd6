// Package node is the broker service: it wires the rooms together and runs
// them as one process's node. Listeners accept connections, sessions serve
// the client protocol over the broker core, and an HTTP listener answers
// operators.
package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node/admin"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/transport/quic"
)

// A Node is one running broker.
type Node struct {
	cfg       *config.Config
	log       *slog.Logger
	clock     Clock
	store     *storage.Store // nil without storage
	core      *broker.Broker
	sessions  *session.Server
	metrics   *telemetry.Metrics
	limiter   *quic.ConnLimiter
	listeners []*quic.Listener
	readiness *admin.Readiness
	http      *admin.Server

	beforeDrain, afterDrain func(context.Context) // may be nil
	cluster                 func() telemetry.ClusterSnapshot

	steps     *steady.Watch      // of the clock; nil before it is watched
	cancel    context.CancelFunc // ends what Shutdown has not ended
	accepting sync.WaitGroup
	stopOnce  sync.Once
	done      chan struct{}
	err       error
}

// Start opens a node; it is listening when Start returns. ctx bounds the
// start alone: end the node with Shutdown.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	n := &Node{cfg: o.Config, log: o.Logger, clock: o.Clock, beforeDrain: o.BeforeDrain, afterDrain: o.AfterDrain, cluster: o.Cluster, done: make(chan struct{})}
	n.metrics = telemetry.New(telemetry.Options{TenantMax: o.Config.Tenants.MetricsMax, Version: o.Version})
	if err := n.openStorage(&o); err != nil {
		return nil, err
	}
	n.core = broker.New(coreConfig(o.Config, n.store, telemetry.Module(n.log, "broker"), n.reportPanic), o.Clock)
	n.readiness = admin.NewReadiness(n.metrics.Process.Ready, (&health{n: n}).reason)
	if err := n.open(&o); err != nil {
		n.closeAll()
		return nil, err
	}
	verifier := auth.NewVerifier(o.Keys, o.Clock.Now)
	n.sessions = session.NewServer(sessionConfig(&o, n.ports()), n.core, verifier, n.metrics, o.Clock, telemetry.Module(n.log, "session"))
	n.metrics.ReadFrom(n.snapshot)
	n.watchClock()
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	for _, l := range n.listeners {
		n.accepting.Add(1)
		go func() {
			defer n.accepting.Done()
			n.accept(run, l)
		}()
		n.log.Info("listening", "addr", l.Addr().String())
	}
	return n, nil
}

// open binds the HTTP listener, which tells that the node is starting, and
// then the client listeners.
func (n *Node) open(o *Options) error {
	if o.Config.Listen.MetricsBind != "" {
		s, err := admin.Listen(admin.Options{
			Addr: o.Config.Listen.MetricsBind, Readiness: n.readiness, Gatherer: n.metrics.Registry(),
			PProf: o.Config.Listen.PProf, Logger: telemetry.Module(n.log, "admin"),
		})
		if err != nil {
			return err
		}
		n.http = s
	}
	return n.listen(o)
}

// Ready says that the catalog is applied: /ready answers 200 from now on, as
// soon as the logs there are at this moment are open.
func (n *Node) Ready() { n.readiness.Reach(admin.Serving) }

// AdminAddr is the address of the HTTP listener.
func (n *Node) AdminAddr() string { return n.http.Addr().String() }

func (n *Node) reportPanic(value any, stack []byte) {
	n.log.Error("publish executor panicked", "error", fmt.Sprint(value), "stack", string(stack))
}

// accept hands connections over at once: the handshake queue is short.
func (n *Node) accept(ctx context.Context, l *quic.Listener) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return
		}
		n.metrics.Connections.Accepted.Inc()
		conns.Add(1)
		go func() {
			defer conns.Done()
			n.metrics.Connections.Open.Inc()
			defer n.metrics.Connections.Open.Dec()
			defer n.track(conn)()
			n.sessions.ServeConn(ctx, conn)
		}()
	}
}

// ClientAddrs are the addresses clients dial, one a listener.
func (n *Node) ClientAddrs() []string {
	addrs := make([]string, len(n.listeners))
	for i, l := range n.listeners {
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// Core is the broker core, for whoever manages its catalog.
func (n *Node) Core() *broker.Broker { return n.core }

// AddTenant registers a tenant with its namespaces.
func (n *Node) AddTenant(tenant string, namespaces ...string) error {
	if err := n.core.AddTenant(tenant); err != nil {
		return err
	}
	for _, ns := range namespaces {
		if err := n.core.AddNamespace(tenant, ns); err != nil {
			return err
		}
	}
	return nil
}

// Done is closed when the node has stopped.
func (n *Node) Done() <-chan struct{} { return n.done }

// randomSeed is the one place the node takes randomness for its core.
func randomSeed() uint64 {
	var b [8]byte
	// crypto/rand.Read never fails on supported systems.
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}
