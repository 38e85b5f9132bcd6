// Package brokerservice runs a node together with its side of the control plane,
// where its settings name one: it hands the one to the other, in the order in
// which both start and end.
package brokerservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/internal/node/controlplane"
	"github.com/felixlog/felix/internal/telemetry"
)

// A Service is a running node that follows a control plane.
type Service struct {
	*node.Node
	agent *controlplane.Agent

	once sync.Once
	done chan struct{}
	err  error
}

// Start starts a node with the settings of o, and its agent. It is ready when
// Start returns: the catalog is applied, as the control plane has it or as the
// broker last knew it. The Keys, Directory and hooks of o are set here.
func Start(ctx context.Context, o node.Options) (*Service, error) {
	options, err := agentOptions(&o)
	if err != nil {
		return nil, err
	}
	agent, err := controlplane.New(options)
	if err != nil {
		return nil, err
	}
	o.Keys, o.Directory, o.BeforeDrain, o.AfterDrain = agent.Keys(), agent.Directory(), agent.Drain, agent.Leave
	o.Cluster = func() telemetry.ClusterSnapshot { return clusterSnapshot(agent) }
	n, err := node.Start(ctx, o)
	if err != nil {
		agent.Close(ctx)
		return nil, err
	}
	s := &Service{Node: n, agent: agent, done: make(chan struct{})}
	if err := agent.Start(ctx, n.Core()); err != nil {
		return nil, errors.Join(err, s.Shutdown(context.WithoutCancel(ctx)))
	}
	n.Ready()
	agent.Join()
	go func() {
		select {
		case err := <-agent.Failed():
			// The control plane will not have this node: it is of no use.
			s.end(context.Background(), fmt.Errorf("the control plane refuses this node: %w", err))
		case <-s.done:
		}
	}()
	return s, nil
}

// Agent is the node's side of the control plane.
func (s *Service) Agent() *controlplane.Agent { return s.agent }

// Done is closed when the node has stopped.
func (s *Service) Done() <-chan struct{} { return s.done }

// Shutdown hands over what the node leads, stops it and leaves the cluster.
func (s *Service) Shutdown(ctx context.Context) error { return s.end(ctx, nil) }

func (s *Service) end(ctx context.Context, cause error) error {
	s.once.Do(func() {
		s.err = errors.Join(cause, s.Node.Shutdown(ctx))
		s.agent.Close(ctx)
		close(s.done)
	})
	<-s.done
	return s.err
}

func agentOptions(o *node.Options) (controlplane.Options, error) {
	c := &o.Config.Cluster
	options := controlplane.Options{
		URL: c.URL, Token: c.Token, TokenFile: c.TokenFile, RefreshTokenFile: c.RefreshTokenFile,
		NodeID: c.NodeID, AdvertiseAddr: c.AdvertiseAddr, ClientAddr: c.ClientAddr, Region: c.Region, Zone: c.Zone,
		Labels: c.Labels, MaxShards: uint32(c.MaxShards), Weight: uint32(c.Weight),
		Storage: o.Config.Storage.Dir != "", StateDir: o.Config.Storage.Dir,
		SyncInterval: c.SyncInterval, HandoffTimeout: o.Config.Shutdown.Handoff,
		UserAgent: "felix-broker/" + o.Version,
	}
	if o.Logger != nil {
		options.Logger = telemetry.Module(o.Logger, "controlplane")
	}
	if o.Clock != nil {
		options.Now = o.Clock.Now
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return options, fmt.Errorf("controlplane_ca: %w", err)
		}
		options.CAPEM = pem
	}
	return options, nil
}

// Follows says whether the settings name a control plane.
func Follows(cfg *config.Config) bool { return cfg.Cluster.URL != "" }

// clusterSnapshot is what the metrics tell of an agent.
func clusterSnapshot(a *controlplane.Agent) telemetry.ClusterSnapshot {
	st := a.Stats()
	return telemetry.ClusterSnapshot{
		Live: st.Membership.Lifecycle == model.Live, LeaseHeld: a.LeaseValid(), Synced: st.Mirror.Synced,
		Missing: st.Mirror.Missing, Undone: st.Mirror.Failed,
		Heartbeats: st.Membership.Heartbeats, MembershipFailures: st.Membership.Failures, Registrations: st.Membership.Registrations,
		SyncPasses: st.Mirror.Passes, SyncFailures: st.Mirror.Failures,
		KeyFetches: st.Keys.Fetches, KeyFailures: st.Keys.Failures,
	}
}
