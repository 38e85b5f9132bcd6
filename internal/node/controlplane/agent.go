package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/node/controlplane/credential"
	"github.com/felixlog/felix/internal/node/controlplane/membership"
	"github.com/felixlog/felix/internal/node/controlplane/mirror"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/wire"
)

// An Agent is a broker's side of the control plane. Make it, start the node
// with its Keys, Directory, Drain and Leave, then start the agent with the
// node's core, and close it when the node has stopped:
//
//	agent, err := controlplane.New(options)
//	n, err := node.Start(ctx, node.Options{Keys: agent.Keys(), Directory: agent.Directory(),
//		BeforeDrain: agent.Drain, AfterDrain: agent.Leave, ...})
//	err = agent.Start(ctx, n.Core())
//	n.Ready()
//	agent.Join()
//	select { case err := <-agent.Failed(): ... }
type Agent struct {
	o          Options
	client     *apiclient.Client
	credential *credential.Source
	keys       *auth.JWKSSource
	directory  *directory
	member     *membership.Member // nil for a broker that stands alone
	mirror     *mirror.Mirror
	target     *target // without its core before the start
	knew       bool    // something of an earlier run

	cancel context.CancelFunc
	run    context.Context
	loops  sync.WaitGroup
	failed chan error
	dirty  chan struct{} // what the broker knows has changed
	file   string        // where it is kept, "" for nowhere
}

// New checks the options and reads the credential. It connects to nothing.
func New(o Options) (*Agent, error) {
	o.defaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &Agent{o: o, failed: make(chan error, 1), dirty: make(chan struct{}, 1), directory: newDirectory(o.NodeID)}
	open, err := apiclient.New(apiclient.Options{URL: o.URL, CAPEM: o.CAPEM, UserAgent: o.UserAgent})
	if err != nil {
		return nil, err
	}
	a.credential, err = credential.New(credential.Options{
		Token: o.Token, TokenFile: o.TokenFile, RefreshFile: o.RefreshTokenFile, Now: o.Now, Logger: o.Logger,
		Refresh: func(ctx context.Context, tenant, refreshToken string) (apiclient.TokenResponse, error) {
			return open.Refresh(ctx, tenant, refreshToken, apiclient.AudienceControlPlane)
		},
	})
	if err != nil {
		return nil, err
	}
	a.client = open.WithToken(a.credential.Token)
	a.keys = auth.NewJWKSSource(auth.JWKSOptions{Fetch: a.fetchKeys, Known: a.mayExist, Changed: func(string) { a.changed() }, Now: o.Now})
	if o.NodeID != "" {
		a.member = membership.New(membership.Options{API: a.client, Logger: o.Logger})
	}
	if o.StateDir != "" {
		a.file = filepath.Join(o.StateDir, StateFile)
	}
	a.target = &target{placed: a.member != nil, storage: o.Storage, gone: a.keys.Forget}
	a.mirror = mirror.New(mirror.Options{
		Source: a.client, Target: a.target, Routes: a.directory, NodeID: o.NodeID, ValidateName: wire.ValidateName,
		Interval: o.SyncInterval, Wait: o.LongPoll, Changed: a.changed, Logger: o.Logger,
	})
	return a, nil
}

// Keys are what verifies clients' tokens.
func (a *Agent) Keys() auth.KeySource { return a.keys }

// Directory says where shards are served; nil for a broker that stands alone.
func (a *Agent) Directory() session.Directory {
	if a.member == nil {
		return nil
	}
	return a.directory
}

// Start applies what the control plane says to core and keeps doing so. It
// returns when the catalog is applied: as the control plane has it, or, where
// that cannot be read within the seed timeout, as the broker knew it at its last
// run. With neither it goes on trying until ctx ends. A refusal of the
// credential ends it at once where there is nothing to serve from.
func (a *Agent) Start(ctx context.Context, core *broker.Broker) error {
	a.target.core = core
	before := a.remember()
	a.knew = before != nil
	if a.knew {
		a.directory.remembered(before.Peers)
		a.putKeys(before)
		a.mirror.Load(before.State)
	}
	if err := a.seed(ctx, a.knew); err != nil {
		return err
	}
	a.run, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	a.loops.Go(func() { a.mirror.Run(a.run) })
	a.loops.Go(func() { a.keepKeys(a.run) })
	if a.member != nil {
		a.loops.Go(func() { a.pollNodes(a.run) })
	}
	if a.file != "" {
		a.loops.Go(func() { a.keepState(a.run) })
	}
	return nil
}

// seed makes the first pass. A broker that knew something makes one attempt:
// what it knew is served where that fails.
func (a *Agent) seed(ctx context.Context, knew bool) error {
	for {
		err := a.seedOnce(ctx, knew)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("read the control plane's feeds: %w", err)
		}
		if knew {
			a.o.Logger.Warn("the control plane cannot be read: serving what this broker knew at its last run", "file", a.file, "error", err)
			return nil
		}
		if status := apiclient.StatusOf(err); status == 401 || status == 403 {
			return fmt.Errorf("the control plane refuses this broker's credential, which needs node.view on cluster:*: %w", err)
		}
		select {
		case <-time.After(a.interval()):
		case <-ctx.Done():
		}
	}
}

func (a *Agent) seedOnce(ctx context.Context, bounded bool) error {
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.o.SeedTimeout)
		defer cancel()
	}
	err := a.mirror.Seed(ctx)
	if err == nil && a.member != nil {
		a.readNodes(ctx)
	}
	return err
}

func (a *Agent) interval() time.Duration {
	if a.o.SyncInterval > 0 {
		return a.o.SyncInterval
	}
	return mirror.DefaultInterval
}

// Join makes the broker a member, now that it can serve. It returns at once;
// [Agent.Failed] hears of a registration that is refused for good. Nothing
// happens for a broker that stands alone.
func (a *Agent) Join() {
	if a.member == nil {
		return
	}
	a.loops.Go(func() {
		if err := a.member.Run(a.run, a.o.registration(), a.knew); err != nil {
			a.failed <- err
		}
	})
}

// Failed gives the error for which the broker has to stop.
func (a *Agent) Failed() <-chan error { return a.failed }

// Joined is closed when the broker is a member; nil for one that stands alone.
func (a *Agent) Joined() <-chan struct{} {
	if a.member == nil {
		return nil
	}
	return a.member.Joined()
}

// LeaseValid says whether the lease that heartbeats renew holds (control plane
// 6.4). A broker that stands alone needs none. Shards of one copy are served
// without it too: nobody else can have them.
func (a *Agent) LeaseValid() bool { return a.member == nil || a.member.LeaseValid() }

// Close ends the loops, keeps what the broker knows, and waits for both and for
// a refresh of the credential that is under way.
func (a *Agent) Close(ctx context.Context) {
	if a.cancel != nil {
		a.cancel()
	}
	a.loops.Wait()
	a.credential.Wait(ctx)
	a.keys.Close()
	a.client.CloseIdle()
}

// Stats are what an agent did.
type Stats struct {
	Mirror     mirror.Stats
	Membership membership.Stats
	Keys       auth.JWKSStats
	Credential credential.Stats
}

// Stats reads the counts.
func (a *Agent) Stats() Stats {
	s := Stats{Mirror: a.mirror.Stats(), Keys: a.keys.Stats(), Credential: a.credential.Stats()}
	if a.member != nil {
		s.Membership = a.member.Stats()
	}
	return s
}
