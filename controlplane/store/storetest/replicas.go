package storetest

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func tenantReplica() *replica[string, model.Tenant, model.TenantChange] {
	return &replica[string, model.Tenant, model.TenantChange]{
		take: store.Store.TenantsSnapshot, read: store.Store.TenantChanges,
		key:   func(t model.Tenant) string { return t.TenantID },
		parts: func(c model.TenantChange) (model.Op, string, *model.Tenant) { return c.Op, c.TenantID, c.Tenant },
	}
}

func namespaceReplica() *replica[model.NamespaceKey, model.Namespace, model.NamespaceChange] {
	return &replica[model.NamespaceKey, model.Namespace, model.NamespaceChange]{
		take: store.Store.NamespacesSnapshot, read: store.Store.NamespaceChanges, key: model.Namespace.Key,
		parts: func(c model.NamespaceChange) (model.Op, model.NamespaceKey, *model.Namespace) {
			return c.Op, c.Key, c.Namespace
		},
	}
}

func streamReplica() *replica[model.StreamKey, model.Stream, model.StreamChange] {
	return &replica[model.StreamKey, model.Stream, model.StreamChange]{
		take: store.Store.StreamsSnapshot, read: store.Store.StreamChanges, key: model.Stream.Key,
		parts: func(c model.StreamChange) (model.Op, model.StreamKey, *model.Stream) { return c.Op, c.Key, c.Stream },
		check: func(c model.StreamChange, old model.Stream) error { return checkTombstone(c.Op, c.Tombstone, old.UID) },
	}
}

func cacheReplica() *replica[model.CacheKey, model.Cache, model.CacheChange] {
	return &replica[model.CacheKey, model.Cache, model.CacheChange]{
		take: store.Store.CachesSnapshot, read: store.Store.CacheChanges, key: model.Cache.Key,
		parts: func(c model.CacheChange) (model.Op, model.CacheKey, *model.Cache) { return c.Op, c.Key, c.Cache },
		check: func(c model.CacheChange, old model.Cache) error { return checkTombstone(c.Op, c.Tombstone, old.UID) },
	}
}

func nodeReplica() *replica[string, model.Node, model.NodeChange] {
	return &replica[string, model.Node, model.NodeChange]{
		take: store.Store.NodesSnapshot, read: store.Store.NodeChanges,
		key:   func(n model.Node) string { return n.NodeID },
		parts: func(c model.NodeChange) (model.Op, string, *model.Node) { return c.Op, c.NodeID, c.Node },
	}
}

func assignmentReplica() *replica[model.ShardKey, model.Assignment, model.AssignmentChange] {
	return &replica[model.ShardKey, model.Assignment, model.AssignmentChange]{
		take: store.Store.AssignmentsSnapshot, read: store.Store.AssignmentChanges,
		key: func(a model.Assignment) model.ShardKey { return a.ShardKey },
		parts: func(c model.AssignmentChange) (model.Op, model.ShardKey, *model.Assignment) {
			return c.Op, c.Key, c.Assignment
		},
	}
}

// checkTombstone wants one of the record that was deleted, and none otherwise.
func checkTombstone(op model.Op, t *model.Tombstone, uid string) error {
	switch {
	case op != model.Deleted && t == nil, op == model.Deleted && t != nil && t.UID == uid:
		return nil
	default:
		return fmt.Errorf("%s of %q with tombstone %s", op, uid, asJSON(t))
	}
}
