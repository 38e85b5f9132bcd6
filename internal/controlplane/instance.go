package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/wire"
)

// An Instance is a running instance with its store.
type Instance struct {
	*controlplane.Server
	store store.Store

	once sync.Once
	done chan struct{}
	err  error
}

// Start opens the store and starts the service over it; it listens when Start
// returns. ctx bounds the start alone.
func Start(ctx context.Context, cfg *config.ControlPlane, logger *slog.Logger) (*Instance, error) {
	s, err := OpenStore(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	options := optionsOf(cfg)
	options.Store, options.Logger = s, logger
	server, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Instance{Server: server, store: s, done: make(chan struct{})}, nil
}

// Store is what the instance keeps everything in.
func (i *Instance) Store() store.Store { return i.store }

// Done is closed when the instance has stopped.
func (i *Instance) Done() <-chan struct{} { return i.done }

// Shutdown ends the service in order (control plane 23.4), and then its store.
// When ctx ends, or Shutdown is called once more, it waits for balancers to
// notice no longer.
func (i *Instance) Shutdown(ctx context.Context) error {
	first := false
	i.once.Do(func() { first = true })
	if !first {
		_ = i.Server.Shutdown(ctx) // which hurries the one under way
		<-i.done
		return i.err
	}
	defer close(i.done)
	stop := context.AfterFunc(ctx, func() { _ = i.Server.Shutdown(ctx) })
	defer stop()
	i.err = errors.Join(i.Server.Shutdown(ctx), i.store.Close())
	return i.err
}

// optionsOf translates the settings.
func optionsOf(c *config.ControlPlane) controlplane.Options {
	o := controlplane.DefaultOptions()
	o.BindAddr, o.MetricsBind, o.TLSCert, o.TLSKey, o.RegionID = c.Bind, c.MetricsBind, c.TLSCert, c.TLSKey, c.Region
	for _, b := range c.Bridges {
		o.RegionBridges = append(o.RegionBridges, model.Bridge{Source: b.Source, Destination: b.Destination})
	}
	a := &c.Auth
	o.OIDCAllowedAlgorithms, o.OIDCAllowInsecureHTTP, o.OIDCAllowPrivateIDP = a.Algorithms, a.AllowInsecureHTTP, a.AllowPrivateIDP
	o.AcceptBrokerAudience, o.ExchangeTokenTTL, o.RefreshTokenTTL = a.AcceptBrokerAudience, a.TokenTTL, a.RefreshTTL
	b := &c.Bootstrap
	o.Bootstrap = controlplane.BootstrapOptions{
		Enabled: b.Enabled, BindAddr: b.Bind, Token: b.Token, TokenPrevious: b.PreviousToken,
		TLSCert: b.TLSCert, TLSKey: b.TLSKey, TLSClientCA: b.TLSClientCA, DevTokens: b.DevTokens,
	}
	n := &c.Liveness
	o.NodeHeartbeatInterval, o.NodeExpiryTimeout, o.NodeRegrantMargin = n.Heartbeat, n.Expiry, n.Margin
	o.NodeExpirySweepInterval, o.ShardReconcileInterval, o.PlacementSettle = n.Sweep, n.Reconcile, n.Settle
	m := &c.Moves
	o.ShardMovesMaxConcurrent, o.ShardMovesMaxPerNode, o.ShardMoveFenceMaxLagRecords = m.Concurrent, m.PerNode, uint64(m.FenceLag)
	o.ShardMoveTimeout, o.ShardRestoreAfter = m.Timeout, m.RestoreAfter
	o.ReadinessTimeout, o.ReadinessCacheTTL = c.Readiness.Timeout, c.Readiness.CacheTTL
	o.ShutdownPredrain, o.ShutdownDrainTimeout = c.Shutdown.PreDrain, c.Shutdown.Drain
	o.ValidateName, o.Clock, o.Random = wire.ValidateName, time.Now, rand.Reader
	return o
}
