package mirror

import (
	"github.com/felixlog/felix/controlplane/model"
)

func (p *picture) applyTenant(c model.TenantChange) error {
	switch {
	case c.Op == model.Deleted:
		delete(p.tenants, c.TenantID)
		p.doomWithin(c.TenantID, nil)
	case c.Tenant == nil || c.Tenant.TenantID != c.TenantID:
		return errChange
	default:
		p.tenants[c.TenantID] = held[model.Tenant]{rec: *c.Tenant}
	}
	return nil
}

func (p *picture) applyNamespace(c model.NamespaceChange) error {
	switch {
	case c.Op == model.Deleted:
		delete(p.namespaces, c.Key)
		p.doomWithin(c.Key.TenantID, &c.Key.Namespace)
	case c.Namespace == nil || c.Namespace.Key() != c.Key:
		return errChange
	default:
		p.namespaces[c.Key] = held[model.Namespace]{rec: *c.Namespace}
	}
	return nil
}

func (p *picture) applyStream(c model.StreamChange) error {
	switch {
	case c.Op == model.Deleted:
		if c.Tombstone != nil {
			t := *c.Tombstone
			t.Kind, t.TenantID, t.Namespace, t.Name = model.StreamShard, c.Key.TenantID, c.Key.Namespace, c.Key.Stream
			p.bury(t)
			if have, found := p.streams[c.Key]; found && have.rec.UID != t.UID {
				return nil // the tombstone of an earlier one of this name
			}
		}
		p.dropStream(c.Key)
	case c.Stream == nil || c.Stream.Key() != c.Key:
		return errChange
	default:
		p.dropStream(c.Key)
		p.streams[c.Key] = held[model.Stream]{rec: *c.Stream}
		p.touched.stream(*c.Stream)
	}
	return nil
}

func (p *picture) applyCache(c model.CacheChange) error {
	switch {
	case c.Op == model.Deleted:
		if c.Tombstone != nil {
			t := *c.Tombstone
			t.Kind, t.TenantID, t.Namespace, t.Name = model.CacheShard, c.Key.TenantID, c.Key.Namespace, c.Key.Cache
			p.bury(t)
			if have, found := p.caches[c.Key]; found && have.rec.UID != t.UID {
				return nil
			}
		}
		p.dropCache(c.Key)
	case c.Cache == nil || c.Cache.Key() != c.Key:
		return errChange
	default:
		p.dropCache(c.Key)
		p.caches[c.Key] = held[model.Cache]{rec: *c.Cache}
		p.touched.cache(*c.Cache)
	}
	return nil
}

// doomWithin notes that all in a tenant or namespace was deleted, but for what
// was made since in another one of the name: the feeds of what is in it tell
// which, and are read next.
func (p *picture) doomWithin(tenant string, namespace *string) {
	p.dooms = true
	doom(p.namespaces, func(k model.NamespaceKey) bool { return k.TenantID == tenant && namespace == nil })
	within := func(t, ns string) bool { return t == tenant && (namespace == nil || ns == *namespace) }
	doom(p.streams, func(k model.StreamKey) bool { return within(k.TenantID, k.Namespace) })
	doom(p.caches, func(k model.CacheKey) bool { return within(k.TenantID, k.Namespace) })
}

// spare takes back all dooms: the feeds were read since, and what was deleted is
// gone.
func (p *picture) spare() {
	if !p.dooms {
		return
	}
	p.dooms = false
	spare(p.namespaces)
	spare(p.streams)
	spare(p.caches)
}

func doom[K comparable, T any](all map[K]held[T], within func(K) bool) {
	for k, h := range all {
		if within(k) {
			h.doomed = true
			all[k] = h
		}
	}
}

func spare[K comparable, T any](all map[K]held[T]) {
	for k, h := range all {
		if h.doomed {
			h.doomed = false
			all[k] = h
		}
	}
}

// dropStream takes a stream out, with all that hangs on it.
func (p *picture) dropStream(k model.StreamKey) {
	if have, found := p.streams[k]; found {
		p.touched.stream(have.rec)
		delete(p.streams, k)
	}
}

func (p *picture) dropCache(k model.CacheKey) {
	if have, found := p.caches[k]; found {
		p.touched.cache(have.rec)
		delete(p.caches, k)
	}
}

// applyAssignment drops what is at or below the generation held: duplicates and
// reordering do no harm.
func (p *picture) applyAssignment(c model.AssignmentChange, routes Routes) error {
	k := shardKey(c.Key)
	switch {
	case c.Op == model.Unassigned:
		p.release(k, routes)
	case c.Assignment == nil || shardKey(c.Assignment.ShardKey) != k:
		return errChange
	default:
		if have, found := p.assignments[k]; !found || c.Assignment.Generation > have.Generation {
			p.place(k, *c.Assignment, routes)
		}
	}
	return nil
}
