package mirror

import (
	"maps"

	"github.com/felixlog/felix/controlplane/model"
)

func (p *picture) applyTenant(c model.TenantChange) error {
	switch {
	case c.Op == model.Deleted:
		delete(p.tenants, c.TenantID)
		p.dropWithin(c.TenantID, nil)
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
		p.dropWithin(c.Key.TenantID, &c.Key.Namespace)
	case c.Namespace == nil || c.Namespace.Key() != c.Key:
		return errChange
	default:
		p.namespaces[c.Key] = held[model.Namespace]{rec: *c.Namespace}
	}
	return nil
}

// dropWithin takes out all that is in a deleted tenant or namespace. Their own
// tombstones come with their own feeds and have the data removed.
func (p *picture) dropWithin(tenant string, namespace *string) {
	within := func(t, ns string) bool { return t == tenant && (namespace == nil || ns == *namespace) }
	maps.DeleteFunc(p.namespaces, func(k model.NamespaceKey, _ held[model.Namespace]) bool { return within(k.TenantID, k.Namespace) })
	maps.DeleteFunc(p.streams, func(k model.StreamKey, _ held[model.Stream]) bool { return within(k.TenantID, k.Namespace) })
	maps.DeleteFunc(p.caches, func(k model.CacheKey, _ held[model.Cache]) bool { return within(k.TenantID, k.Namespace) })
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
		delete(p.streams, c.Key)
	case c.Stream == nil || c.Stream.Key() != c.Key:
		return errChange
	default:
		p.streams[c.Key] = held[model.Stream]{rec: *c.Stream}
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
		delete(p.caches, c.Key)
	case c.Cache == nil || c.Cache.Key() != c.Key:
		return errChange
	default:
		p.caches[c.Key] = held[model.Cache]{rec: *c.Cache}
	}
	return nil
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
