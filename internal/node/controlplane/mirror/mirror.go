package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// Defaults of [Options].
const (
	DefaultInterval = 2 * time.Second
	DefaultWait     = 20 * time.Second
	DefaultRefresh  = 5 * time.Minute
)

// Options are what a mirror is made with.
type Options struct {
	Source Source
	Target Target
	Routes Routes // nil hears nothing
	// NodeID is who this broker is; empty for one that stands alone, serves all
	// shards and reads no assignments.
	NodeID string
	// ValidateName checks the name of a "tenant", "namespace", "stream" or
	// "cache"; what it refuses is not served.
	ValidateName func(kind, name string) error
	// Interval is the time between passes that nothing caused; Wait how long a
	// feed is asked to hold an answer; Refresh the time between snapshots that
	// nothing caused, which find what a feed could not tell. 0 is the default.
	Interval, Wait, Refresh time.Duration
	// Changed is called after a pass that changed the picture; nil is not.
	Changed func()
	Logger  *slog.Logger
}

// A Mirror keeps a target as the feeds say. Seed it, then run it.
type Mirror struct {
	o     Options
	feeds []follower
	wake  chan struct{}
	view  view

	// pass is held during a pass; it guards the rest, and the feeds.
	pass   sync.Mutex
	pic    *picture
	served served
	looked touched           // what the last reconciliation looked at
	failed map[string]string // what could not be done, and why
	silent map[string]string // feeds that cannot be read, and why
	named  []string          // what was last said to be missing
}

// New returns a mirror with an empty picture.
func New(o Options) *Mirror {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Refresh <= 0 {
		o.Refresh = DefaultRefresh
	}
	if o.Routes == nil {
		o.Routes = noRoutes{}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	m := &Mirror{
		o: o, wake: make(chan struct{}, 1), pic: newPicture(), served: newServed(),
		failed: make(map[string]string), silent: make(map[string]string),
	}
	m.feeds = m.allFeeds()
	m.view.init(m.feeds)
	return m
}

type noRoutes struct{}

func (noRoutes) SetRoute(model.Assignment) {}
func (noRoutes) DropRoute(model.ShardKey)  {}

// allFeeds are the feeds in the order in which they are read (control plane
// 5.3).
func (m *Mirror) allFeeds() []follower {
	s, p := m.o.Source, m.pic
	all := []follower{
		&feed[model.Tenant, model.TenantChange]{name: "tenants", snapshot: s.TenantsSnapshot, changes: s.TenantChanges, replace: p.replaceTenants, apply: p.applyTenant},
		&feed[model.Namespace, model.NamespaceChange]{name: "namespaces", snapshot: s.NamespacesSnapshot, changes: s.NamespaceChanges, replace: p.replaceNamespaces, apply: p.applyNamespace},
		&feed[model.Cache, model.CacheChange]{name: "caches", snapshot: s.CachesSnapshot, changes: s.CacheChanges, replace: p.replaceCaches, apply: p.applyCache},
		&feed[model.Stream, model.StreamChange]{name: "streams", snapshot: s.StreamsSnapshot, changes: s.StreamChanges, replace: p.replaceStreams, apply: p.applyStream},
	}
	if m.o.NodeID != "" {
		all = append(all, &feed[model.Assignment, model.AssignmentChange]{
			name: "shard-assignments", snapshot: s.AssignmentsSnapshot, changes: s.AssignmentChanges,
			replace: func(s model.Snapshot[model.Assignment], reset bool) { p.replaceAssignments(s, reset, m.o.Routes) },
			apply:   func(c model.AssignmentChange) error { return p.applyAssignment(c, m.o.Routes) },
		})
	}
	return all
}

// Load gives the picture of an earlier run, before the first pass. That pass
// serves from it whatever the control plane leaves unsaid.
func (m *Mirror) Load(s *State) {
	m.pass.Lock()
	defer m.pass.Unlock()
	s.into(m.pic, m.o.Routes)
	m.pic.touched.all = true // it waits to be served
}

// State is what the picture holds, for a later run. It waits for a pass that is
// under way.
func (m *Mirror) State() *State {
	m.pass.Lock()
	defer m.pass.Unlock()
	return stateOf(m.pic)
}

// Seed makes one pass. It fails where a feed cannot be read, so that the caller
// may serve from an earlier picture, and seed again.
func (m *Mirror) Seed(ctx context.Context) error { return m.makePass(ctx) }

// Run follows the feeds until ctx ends.
func (m *Mirror) Run(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	for _, f := range m.feeds {
		switch f.feedName() {
		case "caches", "streams", "shard-assignments":
			watchers.Go(func() { m.watch(ctx, f) })
		}
	}
	refresh := time.NewTicker(m.o.Refresh)
	defer refresh.Stop()
	next := time.NewTimer(m.o.Interval)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-next.C:
		case <-refresh.C:
			m.Refresh()
		}
		_ = m.makePass(ctx) // it is logged, and made again
		next.Reset(m.pause())
	}
}

// pause until the next pass. A feed that may have begun anew is looked at again
// soon.
func (m *Mirror) pause() time.Duration {
	m.pass.Lock()
	defer m.pass.Unlock()
	for _, f := range m.feeds {
		if f.position().behind > 0 {
			return m.o.Interval / 8
		}
	}
	return m.o.Interval
}

// Wake asks for a pass.
func (m *Mirror) Wake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Refresh has the next pass take snapshots of everything.
func (m *Mirror) Refresh() {
	m.pass.Lock()
	defer m.pass.Unlock()
	for _, f := range m.feeds {
		f.stale()
	}
}
