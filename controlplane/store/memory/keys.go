package memory

import (
	"cmp"

	"github.com/felixlog/felix/controlplane/model"
)

func compareNamespaces(a, b model.NamespaceKey) int {
	return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Namespace, b.Namespace))
}

func compareBridges(a, b model.Bridge) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination))
}

// A scope is a tenant, or with a namespace one of those; it finds what is in
// it in a table.
type scope struct {
	tenant    string
	namespace *string
}

func (s scope) compare(tenant, namespace string) int {
	c := cmp.Compare(tenant, s.tenant)
	if c != 0 || s.namespace == nil {
		return c
	}
	return cmp.Compare(namespace, *s.namespace)
}

func inTenant(id string) scope { return scope{tenant: id} }
func inNamespace(k model.NamespaceKey) scope {
	return scope{tenant: k.TenantID, namespace: &k.Namespace}
}
func (s scope) namespaces(k model.NamespaceKey) int { return s.compare(k.TenantID, k.Namespace) }
func (s scope) streams(k model.StreamKey) int       { return s.compare(k.TenantID, k.Namespace) }
func (s scope) caches(k model.CacheKey) int         { return s.compare(k.TenantID, k.Namespace) }
func (s scope) shards(k model.ShardKey) int         { return s.compare(k.TenantID, k.Namespace) }

// An owner is a stream or a cache: what has shards.
type owner struct {
	kind                    model.ShardKind
	tenant, namespace, name string
}

func ofStream(k model.StreamKey) owner {
	return owner{model.StreamShard, k.TenantID, k.Namespace, k.Stream}
}

func ofCache(k model.CacheKey) owner {
	return owner{model.CacheShard, k.TenantID, k.Namespace, k.Cache}
}

// shards finds the shards of both kinds that have the owner's name.
func (o owner) shards(k model.ShardKey) int {
	return cmp.Or(cmp.Compare(k.TenantID, o.tenant), cmp.Compare(k.Namespace, o.namespace), cmp.Compare(k.Stream, o.name))
}
