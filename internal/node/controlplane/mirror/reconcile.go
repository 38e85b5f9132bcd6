package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// served is what the target was given.
type served struct {
	tenants    map[string]struct{}
	namespaces map[model.NamespaceKey]struct{}
	streams    map[model.StreamKey]model.Stream
	caches     map[model.CacheKey]model.Cache
	shards     map[model.ShardKey]order
}

// An order is the last one to serve a shard.
type order struct {
	// generation is that of the order, and followed that of the assignment it
	// came from, which is below it where the feed has begun anew.
	generation, followed uint64
}

func newServed() served {
	return served{
		tenants: make(map[string]struct{}), namespaces: make(map[model.NamespaceKey]struct{}),
		streams: make(map[model.StreamKey]model.Stream), caches: make(map[model.CacheKey]model.Cache),
		shards: make(map[model.ShardKey]order),
	}
}

// reconcile makes the target agree with the picture: first what goes, then data
// that goes, then what comes, then who serves what. What cannot be done is told
// once and tried again at the next pass; the rest is done. mu is held.
func (m *Mirror) reconcile(ctx context.Context) {
	tried := make(map[string]bool)
	try := func(what string, err error) bool {
		tried[what] = true
		m.did(what, err)
		return err == nil
	}
	m.removeStreams(try)
	m.removeCaches(try)
	m.removeNamespaces(try)
	m.removeTenants(try)
	m.purge(ctx, try)
	m.add(try)
	m.order(try)
	for what := range m.failed {
		if !tried[what] {
			delete(m.failed, what) // nobody wants it any more
		}
	}
}

// did notes the outcome of one step.
func (m *Mirror) did(what string, err error) {
	before, was := m.failed[what]
	switch {
	case err == nil && was:
		delete(m.failed, what)
		m.o.Logger.Info("done at last", "step", what)
	case err != nil && before != err.Error():
		m.failed[what] = err.Error()
		m.o.Logger.Error("cannot do what the control plane says; the rest is served", "step", what, "error", err)
	}
}

type tryFunc func(what string, err error) bool

func streamName(k model.StreamKey) string { return k.TenantID + "/" + k.Namespace + "/" + k.Stream }
func cacheName(k model.CacheKey) string   { return k.TenantID + "/" + k.Namespace + "/" + k.Cache }

// A stream that has another uid is another stream.
func (m *Mirror) removeStreams(try tryFunc) {
	for k, have := range m.served.streams {
		if want, wanted := m.pic.streams[k]; wanted && want.rec.UID == have.UID {
			continue
		}
		if try("remove stream "+streamName(k), m.o.Target.RemoveStream(k)) {
			delete(m.served.streams, k)
			m.forgetShards(model.StreamShard, k.TenantID, k.Namespace, k.Stream)
		}
	}
}

func (m *Mirror) removeCaches(try tryFunc) {
	for k, have := range m.served.caches {
		if want, wanted := m.pic.caches[k]; wanted && want.rec.UID == have.UID {
			continue
		}
		if try("remove cache "+cacheName(k), m.o.Target.RemoveCache(k)) {
			delete(m.served.caches, k)
			m.forgetShards(model.CacheShard, k.TenantID, k.Namespace, k.Cache)
		}
	}
}

func (m *Mirror) forgetShards(kind model.ShardKind, tenant, namespace, name string) {
	maps.DeleteFunc(m.served.shards, func(k model.ShardKey, _ order) bool {
		return k.Kind == kind && k.TenantID == tenant && k.Namespace == namespace && k.Stream == name
	})
}

func (m *Mirror) removeNamespaces(try tryFunc) {
	for k := range m.served.namespaces {
		if _, wanted := m.pic.namespaces[k]; wanted {
			continue
		}
		if try("remove namespace "+k.TenantID+"/"+k.Namespace, m.o.Target.RemoveNamespace(k)) {
			delete(m.served.namespaces, k)
			m.forgetWithin(k.TenantID, &k.Namespace)
		}
	}
}

func (m *Mirror) removeTenants(try tryFunc) {
	for t := range m.served.tenants {
		if _, wanted := m.pic.tenants[t]; wanted {
			continue
		}
		if try("remove tenant "+t, m.o.Target.RemoveTenant(t)) {
			delete(m.served.tenants, t)
			m.forgetWithin(t, nil)
		}
	}
}

// forgetWithin notes that all of a tenant or namespace went with it.
func (m *Mirror) forgetWithin(tenant string, namespace *string) {
	within := func(t, ns string) bool { return t == tenant && (namespace == nil || ns == *namespace) }
	maps.DeleteFunc(m.served.namespaces, func(k model.NamespaceKey, _ struct{}) bool { return within(k.TenantID, k.Namespace) })
	maps.DeleteFunc(m.served.streams, func(k model.StreamKey, _ model.Stream) bool { return within(k.TenantID, k.Namespace) })
	maps.DeleteFunc(m.served.caches, func(k model.CacheKey, _ model.Cache) bool { return within(k.TenantID, k.Namespace) })
	maps.DeleteFunc(m.served.shards, func(k model.ShardKey, _ order) bool { return within(k.TenantID, k.Namespace) })
}

// purge removes data of deleted streams and caches, before another of the same
// name comes. The uid of what is wanted is never purged.
func (m *Mirror) purge(ctx context.Context, try tryFunc) {
	for g, t := range m.pic.graves {
		if ctx.Err() != nil {
			return
		}
		what := fmt.Sprintf("remove data of deleted %s %s/%s/%s", t.Kind, t.TenantID, t.Namespace, t.Name)
		if m.alive(t) {
			m.o.Logger.Error("a deletion names a stream or cache that exists: its data stays", "kind", t.Kind, "name", t.TenantID+"/"+t.Namespace+"/"+t.Name)
			delete(m.pic.graves, g)
			continue
		}
		removed, err := m.o.Target.Purge(ctx, t)
		if !try(what, err) {
			continue
		}
		delete(m.pic.graves, g)
		m.pic.buried[g] = struct{}{}
		if removed > 0 {
			m.o.Logger.Info("data of a deleted "+string(t.Kind)+" is removed", "name", t.TenantID+"/"+t.Namespace+"/"+t.Name, "shards", removed)
		}
	}
}

func (m *Mirror) alive(t model.Tombstone) bool {
	if t.Kind == model.CacheShard {
		c, found := m.pic.caches[model.CacheKey{TenantID: t.TenantID, Namespace: t.Namespace, Cache: t.Name}]
		return found && c.rec.UID == t.UID
	}
	s, found := m.pic.streams[model.StreamKey{TenantID: t.TenantID, Namespace: t.Namespace, Stream: t.Name}]
	return found && s.rec.UID == t.UID
}

func (m *Mirror) add(try tryFunc) {
	for t := range m.pic.tenants {
		if _, have := m.served.tenants[t]; !have && try("add tenant "+t, m.checked(m.o.Target.AddTenant, t)) {
			m.served.tenants[t] = struct{}{}
		}
	}
	for k := range m.pic.namespaces {
		if _, have := m.served.namespaces[k]; have || !m.hasTenant(k.TenantID) {
			continue
		}
		if try("add namespace "+k.TenantID+"/"+k.Namespace, m.addNamespace(k)) {
			m.served.namespaces[k] = struct{}{}
		}
	}
	for k, c := range m.pic.caches {
		if have, is := m.served.caches[k]; is && have == c.rec || !m.hasNamespace(k.TenantID, k.Namespace) {
			continue
		}
		if try("add cache "+cacheName(k), m.addCache(c.rec)) {
			m.served.caches[k] = c.rec
		}
	}
	for k, s := range m.pic.streams {
		if have, is := m.served.streams[k]; is && sameStream(have, s.rec) || !m.hasNamespace(k.TenantID, k.Namespace) {
			continue
		}
		if try("add stream "+streamName(k), m.addStream(s.rec)) {
			m.served.streams[k] = s.rec
		}
	}
}

// What belongs to a tenant or namespace that is not there yet waits for it: the
// feeds are read one after the other.
func (m *Mirror) hasTenant(t string) bool {
	_, have := m.served.tenants[t]
	return have
}

func (m *Mirror) hasNamespace(tenant, namespace string) bool {
	_, have := m.served.namespaces[model.NamespaceKey{TenantID: tenant, Namespace: namespace}]
	return have
}

func (m *Mirror) checked(add func(string) error, tenant string) error {
	if err := m.o.ValidateName("tenant", tenant); err != nil {
		return err
	}
	return add(tenant)
}

func (m *Mirror) addNamespace(k model.NamespaceKey) error {
	if err := m.o.ValidateName("namespace", k.Namespace); err != nil {
		return err
	}
	return m.o.Target.AddNamespace(k)
}

// maxShards bounds the shards of what is served.
const maxShards = 1024

func (m *Mirror) addStream(s model.Stream) error {
	if err := m.o.ValidateName("stream", s.Stream); err != nil {
		return err
	}
	if s.Shards < 1 || s.Shards > maxShards {
		return fmt.Errorf("%d shards, from 1 to %d are served", s.Shards, maxShards)
	}
	return m.o.Target.AddStream(s)
}

func (m *Mirror) addCache(c model.Cache) error {
	if err := m.o.ValidateName("cache", c.Cache); err != nil {
		return err
	}
	if c.Shards < 1 || c.Shards > maxShards {
		return fmt.Errorf("%d shards, from 1 to %d are served", c.Shards, maxShards)
	}
	return m.o.Target.AddCache(c)
}

func sameStream(a, b model.Stream) bool {
	same := func(x, y *uint64) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	if !same(a.Retention.MaxAgeSeconds, b.Retention.MaxAgeSeconds) || !same(a.Retention.MaxSizeBytes, b.Retention.MaxSizeBytes) {
		return false
	}
	a.Retention, b.Retention = model.Retention{}, model.Retention{}
	return a == b
}

// order tells the target which shards are its own. Leaving comes first.
func (m *Mirror) order(try tryFunc) {
	if m.o.NodeID == "" {
		return
	}
	for k, have := range m.served.shards {
		a, found := m.pic.assignments[k]
		if found && a.Leader == m.o.NodeID {
			continue
		}
		var err error
		switch {
		case !found:
			err = m.o.Target.Release(k, "the shard is assigned to nobody")
		case a.Generation <= have.generation:
			err = m.o.Target.Release(k, "the shard is assigned to "+a.Leader)
		default:
			err = m.o.Target.Unassign(k, a.Generation, "the shard is assigned to "+a.Leader)
		}
		if try("unassign "+k.String(), err) {
			delete(m.served.shards, k)
		}
	}
	for _, k := range m.ours() {
		a := m.pic.assignments[k]
		have, serves := m.served.shards[k]
		if serves && have.followed == a.Generation {
			continue
		}
		next := order{generation: a.Generation, followed: a.Generation}
		if serves && next.generation <= have.generation {
			next.generation = have.generation + 1 // the feed began anew, and the shard is ours still
		}
		if try("assign "+k.String(), m.o.Target.Assign(k, next.generation)) {
			m.served.shards[k] = next
		}
	}
}

// ours are the shards assigned to this broker of what it serves, in their
// order.
func (m *Mirror) ours() []model.ShardKey {
	var keys []model.ShardKey
	for k, a := range m.pic.assignments {
		if a.Leader != m.o.NodeID {
			continue
		}
		var shards uint32
		if k.Kind == model.CacheShard {
			shards = m.served.caches[model.CacheKey{TenantID: k.TenantID, Namespace: k.Namespace, Cache: k.Stream}].Shards
		} else {
			shards = m.served.streams[model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}].Shards
		}
		if k.Shard < shards {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, model.ShardKey.Compare)
	return keys
}
