package mirror

import (
	"maps"
	"slices"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
)

// A view is what others may read of a mirror while a pass is under way: how
// things were at the end of the last one.
type view struct {
	mu      sync.RWMutex
	tenants map[string]struct{}
	leads   map[model.ShardKey]Lead
	cursors map[string]cursor
	pass    pass
	stats   Stats
}

// A pass says which of the passes are under way or done.
type pass struct {
	begun  uint64        // passes that began
	number uint64        // of the last one that has ended
	ended  chan struct{} // closed at the end of the next
}

func (v *view) init(feeds []follower) {
	v.pass.ended = make(chan struct{})
	v.cursors = make(map[string]cursor)
	v.leads = make(map[model.ShardKey]Lead)
	for _, f := range feeds {
		v.cursors[f.feedName()] = cursor{}
	}
}

func (v *view) cursor(feed string) (cursor, pass) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.cursors[feed], v.pass
}

// Stats count what a mirror did.
type Stats struct {
	Passes   uint64 // that read every feed
	Failures uint64 // reads of a feed that failed
	Synced   bool   // every feed was read at least once
	Missing  int    // streams and caches that are served and not listed any more
	Failed   int    // things that could not be done and are tried again
}

// Stats reads the counts.
func (m *Mirror) Stats() Stats {
	m.view.mu.RLock()
	defer m.view.mu.RUnlock()
	return m.view.stats
}

// Known says whether a tenant may exist: it is in the picture, or not every
// feed was read yet.
func (m *Mirror) Known(tenant string) bool {
	m.view.mu.RLock()
	defer m.view.mu.RUnlock()
	_, found := m.view.tenants[tenant]
	return found || !m.view.stats.Synced
}

// Tenants are those in the picture, sorted.
func (m *Mirror) Tenants() []string {
	m.view.mu.RLock()
	defer m.view.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.view.tenants))
}

// Passed is closed at the end of the next pass.
func (m *Mirror) Passed() <-chan struct{} {
	m.view.mu.RLock()
	defer m.view.mu.RUnlock()
	return m.view.pass.ended
}

// A Lead is a shard that this broker leads, as assigned.
type Lead struct {
	model.Assignment
	// Movable says that the shard can go elsewhere: it is in memory, or there is
	// another copy.
	Movable bool
}

// Leads are the shards that this broker leads, as of the last pass.
func (m *Mirror) Leads() []Lead {
	m.view.mu.RLock()
	defer m.view.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.view.leads), func(a, b Lead) int { return a.ShardKey.Compare(b.ShardKey) })
}

// publish shows how things are; pass is held.
func (m *Mirror) publish() {
	v := &m.view
	tenants := make(map[string]struct{}, len(m.pic.tenants))
	for t := range m.pic.tenants {
		tenants[t] = struct{}{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tenants = tenants
	v.stats.Missing, v.stats.Failed = len(m.named), len(m.failed)
	for _, f := range m.feeds {
		v.cursors[f.feedName()] = *f.position()
	}
}

// publishLeads shows what this broker leads of the shards that were looked at;
// pass is held.
func (m *Mirror) publishLeads() {
	if m.o.NodeID == "" {
		return
	}
	v := &m.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if m.looked.all {
		clear(v.leads)
	}
	for k := range m.looked.shards {
		delete(v.leads, k)
	}
	for k := range among(m.looked.all, m.looked.shards, m.pic.assignments) {
		if a := m.pic.assignments[k]; a.Leader == m.o.NodeID {
			v.leads[k] = Lead{Assignment: a, Movable: m.movable(k, a)}
		}
	}
}

// movable says whether a shard can be served elsewhere. The follower of a move
// that has begun does not make it so: a log has to be copied first.
func (m *Mirror) movable(k model.ShardKey, a model.Assignment) bool {
	if k.Kind == model.CacheShard {
		// A cache of one copy is on the log, where there is one.
		c := m.pic.caches[model.CacheKey{TenantID: k.TenantID, Namespace: k.Namespace, Cache: k.Stream}]
		return c.rec.ReplicationFactor > 1 && len(a.Replicas) > 0
	}
	s, found := m.pic.streams[model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}]
	return found && (!s.rec.Durable || s.rec.ReplicationFactor > 1 && len(a.Replicas) > 0)
}

// began counts a pass.
func (v *view) began() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass.begun++
}

// ended tells of the end of a pass.
func (v *view) ended(whole bool, failures uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stats.Failures += failures
	if whole {
		v.stats.Passes++
		v.stats.Synced = true
	}
	close(v.pass.ended)
	v.pass.number, v.pass.ended = v.pass.begun, make(chan struct{})
}
