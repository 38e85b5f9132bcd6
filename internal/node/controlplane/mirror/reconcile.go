package mirror

import (
	"context"
	"fmt"
	"maps"

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
// once and tried again at the next pass; the rest is done. It looks at what is
// touched. pass is held.
func (m *Mirror) reconcile(ctx context.Context) {
	m.looked, m.pic.touched = m.pic.touched, newTouched()
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
	for k := range among(m.looked.all, m.looked.streams, m.served.streams) {
		have := m.served.streams[k]
		if want, wanted := m.pic.streams[k]; wanted && want.rec.UID == have.UID {
			continue
		}
		if try("remove stream "+streamName(k), m.o.Target.RemoveStream(k)) {
			delete(m.served.streams, k)
			m.forgetShards(model.StreamShard, k.TenantID, k.Namespace, k.Stream, have.Shards)
		} else {
			m.pic.touched.stream(have)
		}
	}
}

func (m *Mirror) removeCaches(try tryFunc) {
	for k := range among(m.looked.all, m.looked.caches, m.served.caches) {
		have := m.served.caches[k]
		if want, wanted := m.pic.caches[k]; wanted && want.rec.UID == have.UID {
			continue
		}
		if try("remove cache "+cacheName(k), m.o.Target.RemoveCache(k)) {
			delete(m.served.caches, k)
			m.forgetShards(model.CacheShard, k.TenantID, k.Namespace, k.Cache, have.Shards)
		} else {
			m.pic.touched.cache(have)
		}
	}
}

func (m *Mirror) forgetShards(kind model.ShardKind, tenant, namespace, name string, shards uint32) {
	for n := range shards {
		delete(m.served.shards, model.ShardKey{TenantID: tenant, Namespace: namespace, Stream: name, Shard: n, Kind: kind})
	}
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
// name comes. The uid of what is wanted, or still served, is never purged.
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
		if m.serves(t) {
			continue // it could not be removed yet
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

// serves says whether the target still has what a tombstone is for.
func (m *Mirror) serves(t model.Tombstone) bool {
	if t.Kind == model.CacheShard {
		have, found := m.served.caches[model.CacheKey{TenantID: t.TenantID, Namespace: t.Namespace, Cache: t.Name}]
		return found && have.UID == t.UID
	}
	have, found := m.served.streams[model.StreamKey{TenantID: t.TenantID, Namespace: t.Namespace, Stream: t.Name}]
	return found && have.UID == t.UID
}

func (m *Mirror) alive(t model.Tombstone) bool {
	if t.Kind == model.CacheShard {
		c, found := m.pic.caches[model.CacheKey{TenantID: t.TenantID, Namespace: t.Namespace, Cache: t.Name}]
		return found && c.rec.UID == t.UID
	}
	s, found := m.pic.streams[model.StreamKey{TenantID: t.TenantID, Namespace: t.Namespace, Stream: t.Name}]
	return found && s.rec.UID == t.UID
}
