// Package controlplane is one instance of the metadata service: the API, its
// listeners and its loops over a store (control plane 1). Package api holds the
// routes, planner what decides about shards, auth who may do what; this package
// starts them, and ends them in order.
package controlplane

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/api"
	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/planner"
)

// raftWatch is how often a Raft member looks whether another took a write that
// it has to plan for. The look is local.
const raftWatch = 20 * time.Millisecond

// A Server is a running instance.
type Server struct {
	o       Options
	metrics *metrics
	ready   *readiness
	planner *planner.Planner
	api     *api.API

	main, probes, boot *listener // boot is nil where it is off

	loops     sync.WaitGroup
	stopLoops context.CancelFunc

	hurry     chan struct{} // closed by the second Shutdown
	hurryOnce sync.Once
	once      sync.Once
	done      chan struct{}
	err       error // of the shutdown, once done is closed
}

// Start binds the listeners and begins to serve. It fails on settings that do
// not fit, naming them, and on addresses that cannot be bound. ctx ends the
// start, not the instance.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := errors.Join(o.check(), ctx.Err()); err != nil {
		return nil, err
	}
	s := &Server{o: o, metrics: newMetrics(), hurry: make(chan struct{}), done: make(chan struct{})}
	s.ready = &readiness{
		health: o.Store.Health, timeout: o.ReadinessTimeout, ttl: o.ReadinessCacheTTL, clock: o.Clock,
		told: func(ready bool) { s.metrics.ready.Set(asNumber(ready)) },
	}
	if member, ok := o.Store.(raftStore); ok {
		s.metrics.registry.MustRegister(newRaftCollector(member))
	}
	if err := s.build(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.run()
	o.Logger.Info("control plane started", "api", s.Addr(), "metrics", s.MetricsAddr(), "bootstrap", s.BootstrapAddr(),
		"store", o.Store.Name(), "region", o.RegionID)
	return s, nil
}

// build makes the parts that serve.
func (s *Server) build() error {
	o := s.o
	service, err := auth.New(auth.Options{
		Store: o.Store, Now: o.Clock, Random: o.Random, Logger: o.Logger, Ready: s.ready.check, ValidateName: o.ValidateName,
		OIDC: oidc.Options{
			Algorithms: o.OIDCAllowedAlgorithms, AllowInsecureHTTP: o.OIDCAllowInsecureHTTP, AllowPrivateIDP: o.OIDCAllowPrivateIDP,
		},
		AccessTTL: o.ExchangeTokenTTL, RefreshTTL: o.RefreshTokenTTL,
		AcceptBrokerAudience: o.AcceptBrokerAudience, DelegateUnboundTokens: o.DelegateUnboundTokens,
		Bootstrap: auth.BootstrapOptions{
			Enabled: o.Bootstrap.Enabled, Token: o.Bootstrap.Token, PreviousToken: o.Bootstrap.TokenPrevious, DevTokens: o.Bootstrap.DevTokens,
		},
		Observer: s.metrics.auth(),
	})
	if err != nil {
		return err
	}
	holder, err := holderName(o.Random)
	if err != nil {
		return err
	}
	po := planner.Options{
		Store: o.Store, Holder: holder,
		Policy: placement.Policy{
			MoveLimit: o.ShardMovesMaxConcurrent, PerNode: o.ShardMovesMaxPerNode, FenceLag: o.ShardMoveFenceMaxLagRecords,
			MoveTimeoutMillis: millis(o.ShardMoveTimeout), SettleMillis: millis(o.PlacementSettle), RestoreAfterMillis: millis(o.ShardRestoreAfter),
		},
		Reconcile: o.ShardReconcileInterval, Sweep: o.NodeExpirySweepInterval, Heartbeat: o.NodeHeartbeatInterval,
		Expiry: o.NodeExpiryTimeout, Margin: o.NodeRegrantMargin, Clock: o.Clock, Logger: o.Logger, Observer: s.metrics,
	}
	if o.Store.Name() == "raft" {
		po.Watch = raftWatch
	}
	s.planner = planner.New(po)
	s.api, err = api.New(api.Options{
		Store: o.Store, Auth: service, Planner: s.planner, RegionID: o.RegionID,
		HeartbeatInterval: o.NodeHeartbeatInterval, ExpiryTimeout: o.NodeExpiryTimeout, FleetFeatures: o.FleetFeatures,
		TokenRate: o.TokenRate, TokenBurst: o.TokenBurst, ValidateName: o.ValidateName, Ready: s.ready.check,
		Observer: s.metrics, Logger: o.Logger, Clock: o.Clock, Random: o.Random,
	})
	return err
}

// listen binds all addresses, or none.
func (s *Server) listen() (err error) {
	o := s.o
	defer func() {
		if err != nil {
			s.closeListeners()
		}
	}()
	config, err := tlsConfig(o.TLSCert, o.TLSKey, "", o.Clock, o.Logger)
	if err != nil {
		return fmt.Errorf("TLS of the API: %w", err)
	}
	bootConfig, err := tlsConfig(o.Bootstrap.TLSCert, o.Bootstrap.TLSKey, o.Bootstrap.TLSClientCA, o.Clock, o.Logger)
	if err != nil {
		return fmt.Errorf("TLS of bootstrap: %w", err)
	}
	if s.probes, err = listen("metrics", o.MetricsBind, maxOtherConnections, nil, s.probeHandler(), o.Logger); err != nil {
		return err
	}
	if o.Bootstrap.Enabled {
		if s.boot, err = listen("bootstrap", o.Bootstrap.BindAddr, maxOtherConnections, bootConfig, s.api.BootstrapHandler(), o.Logger); err != nil {
			return err
		}
	}
	s.main, err = listen("API", o.BindAddr, maxConnections, config, s.api.Handler(), o.Logger)
	return err
}

// run starts the loops.
func (s *Server) run() {
	ctx, stop := context.WithCancel(context.Background())
	s.stopLoops = stop
	s.loops.Go(func() { s.planner.Run(ctx) })
	s.loops.Go(func() { every(ctx, purgePeriod, s.purge) })
	s.loops.Go(func() { every(ctx, clockPeriod, s.watchClock()) })
	var c counter
	s.loops.Go(func() { every(ctx, countPeriod, func(ctx context.Context) { s.count(ctx, &c) }) })
	if len(s.o.RegionBridges) > 0 {
		s.loops.Go(func() { s.seed(ctx) })
	}
}

// Addr is the bound address of the API, host:port.
func (s *Server) Addr() string { return s.main.addr() }

// MetricsAddr is the bound address of the metrics listener.
func (s *Server) MetricsAddr() string { return s.probes.addr() }

// BootstrapAddr is the bound address of the bootstrap listener, "" if it is off.
func (s *Server) BootstrapAddr() string {
	if s.boot == nil {
		return ""
	}
	return s.boot.addr()
}

// holderName is what this process is called in the lease of the planner.
func holderName(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make the name of this instance: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(b[:])), nil
}

func millis(d time.Duration) uint64 { return uint64(d.Milliseconds()) }
