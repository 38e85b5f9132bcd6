package memory

import (
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// What leaves the state is a copy: callers may change what they get.

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// some is the list, or an empty one that is not nil: lists are [] in JSON.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func cloneRetention(r model.Retention) model.Retention {
	return model.Retention{MaxAgeSeconds: pointer(r.MaxAgeSeconds), MaxSizeBytes: pointer(r.MaxSizeBytes)}
}

func same[T any](v *T) T { return *v }

func cloneStream(s *model.Stream) model.Stream {
	c := *s
	c.Retention = cloneRetention(s.Retention)
	return c
}

func cloneNode(n *model.Node) model.Node {
	c := *n
	c.Spec = cloneSpec(n.Spec)
	return c
}

func cloneSpec(s model.NodeSpec) model.NodeSpec {
	s.Labels = maps.Clone(s.Labels)
	s.Capacity.MaxShards = pointer(s.Capacity.MaxShards)
	s.Features = slices.Clone(s.Features)
	return s
}

func cloneAssignment(a *model.Assignment) model.Assignment {
	c := *a
	c.Replicas = slices.Clone(a.Replicas)
	c.MoveStartedAtMillis = pointer(a.MoveStartedAtMillis)
	return c
}

func cloneReport(r *model.ReplicaReport) model.ReplicaReport {
	c := *r
	c.CaughtUp = slices.Clone(r.CaughtUp)
	c.Offsets = maps.Clone(r.Offsets)
	c.LeaderOffset = pointer(r.LeaderOffset)
	return c
}

func cloneIssuer(i *model.IdpIssuer) model.IdpIssuer {
	c := *i
	c.Audiences = slices.Clone(i.Audiences)
	c.DiscoveryURL = pointer(i.DiscoveryURL)
	c.JWKSURL = pointer(i.JWKSURL)
	c.ClaimMappings.GroupsClaim = pointer(i.ClaimMappings.GroupsClaim)
	return c
}

func cloneKey(k *model.SigningKey) model.SigningKey {
	c := *k
	c.Seed, c.Public = slices.Clone(k.Seed), slices.Clone(k.Public)
	return c
}

// cloned copies every record; never nil.
func cloned[V any](list []*V, clone func(*V) V) []V {
	c := make([]V, len(list))
	for i, v := range list {
		c[i] = clone(v)
	}
	return c
}

// payload copies the record of a change.
func payload[V any](v *V, clone func(*V) V) *V {
	if v == nil {
		return nil
	}
	c := clone(v)
	return &c
}

func cloneTenantChange(c model.TenantChange) model.TenantChange {
	c.Tenant = pointer(c.Tenant)
	return c
}

func cloneNamespaceChange(c model.NamespaceChange) model.NamespaceChange {
	c.Namespace = pointer(c.Namespace)
	return c
}

func cloneStreamChange(c model.StreamChange) model.StreamChange {
	c.Stream, c.Tombstone = payload(c.Stream, cloneStream), pointer(c.Tombstone)
	return c
}

func cloneCacheChange(c model.CacheChange) model.CacheChange {
	c.Cache, c.Tombstone = pointer(c.Cache), pointer(c.Tombstone)
	return c
}

func cloneAssignmentChange(c model.AssignmentChange) model.AssignmentChange {
	c.Assignment = payload(c.Assignment, cloneAssignment)
	return c
}

func cloneNodeChange(c model.NodeChange) model.NodeChange {
	c.Node = payload(c.Node, cloneNode)
	return c
}
