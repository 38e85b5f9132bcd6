package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A naive is a store that is easy to see through: maps and scans, no indexes, no
// bounds, no encoding. It knows the catalogue, nodes and assignments.
type naive struct {
	now         uint64
	token       uint64
	tenants     map[string]model.Tenant
	namespaces  map[model.NamespaceKey]model.Namespace
	streams     map[model.StreamKey]model.Stream
	caches      map[model.CacheKey]model.Cache
	nodes       map[string]model.Node
	assignments map[model.ShardKey]model.Assignment
	reports     map[model.ShardKey]model.ReplicaReport

	tenantFeed     []model.TenantChange
	namespaceFeed  []model.NamespaceChange
	streamFeed     []model.StreamChange
	cacheFeed      []model.CacheChange
	nodeFeed       []model.NodeChange
	assignmentFeed []model.AssignmentChange
}

func newNaive() *naive {
	return &naive{
		tenants: map[string]model.Tenant{}, namespaces: map[model.NamespaceKey]model.Namespace{},
		streams: map[model.StreamKey]model.Stream{}, caches: map[model.CacheKey]model.Cache{},
		nodes: map[string]model.Node{}, assignments: map[model.ShardKey]model.Assignment{},
		reports: map[model.ShardKey]model.ReplicaReport{},
	}
}

// Outcomes of the naive store: "", a kind of error, or a reason of conflicts.
const notFound = ErrorNotFound

// outcome is the same of a result.
func outcome(r Result) string {
	switch {
	case r.Error == nil && r.Kind == "put":
		var p putResult
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return err.Error()
		}
		return string(p.Outcome)
	case r.Error == nil:
		return ""
	case r.Error.Kind == ErrorConflict:
		return string(r.Error.Reason)
	default:
		return r.Error.Kind
	}
}

func (n *naive) apply(at uint64, body any) string {
	n.now = max(n.now, at)
	switch b := body.(type) {
	case model.Tenant:
		if _, there := n.tenants[b.TenantID]; there {
			return string(store.Exists)
		}
		n.tenants[b.TenantID] = b
		n.tenantFeed = append(n.tenantFeed, model.TenantChange{Op: model.Created, TenantID: b.TenantID, Tenant: &b})
	case tenantID:
		if _, there := n.tenants[b.TenantID]; !there {
			return notFound
		}
		n.clear(func(tenant, _ string) bool { return tenant == b.TenantID })
		delete(n.tenants, b.TenantID)
		n.tenantFeed = append(n.tenantFeed, model.TenantChange{Op: model.Deleted, TenantID: b.TenantID})
	case model.Namespace:
		if _, there := n.tenants[b.TenantID]; !there {
			return notFound
		}
		if _, there := n.namespaces[b.Key()]; there {
			return string(store.Exists)
		}
		n.namespaces[b.Key()] = b
		n.namespaceFeed = append(n.namespaceFeed, model.NamespaceChange{Op: model.Created, Key: b.Key(), Namespace: &b})
	case model.NamespaceKey:
		if _, there := n.namespaces[b]; !there {
			return notFound
		}
		n.clear(func(tenant, namespace string) bool { return tenant == b.TenantID && namespace == b.Namespace })
	case model.Stream:
		if _, there := n.namespaces[model.NamespaceKey{TenantID: b.TenantID, Namespace: b.Namespace}]; !there {
			return notFound
		}
		if _, there := n.streams[b.Key()]; there {
			return string(store.Exists)
		}
		n.streams[b.Key()] = b
		n.streamFeed = append(n.streamFeed, model.StreamChange{Op: model.Created, Key: b.Key(), Stream: &b})
	case streamPatch:
		s, there := n.streams[b.Key]
		if !there {
			return notFound
		}
		if s.Durable != *b.Patch.Durable {
			s.Durable = *b.Patch.Durable
			n.streams[b.Key] = s
			n.streamFeed = append(n.streamFeed, model.StreamChange{Op: model.Updated, Key: b.Key, Stream: &s})
		}
	case model.StreamKey:
		if _, there := n.streams[b]; !there {
			return notFound
		}
		n.drop(func(k model.ShardKey) bool {
			return k.Kind == model.StreamShard && k.TenantID == b.TenantID && k.Namespace == b.Namespace && k.Stream == b.Stream
		})
		n.dropStream(b)
	case model.Cache:
		if _, there := n.namespaces[model.NamespaceKey{TenantID: b.TenantID, Namespace: b.Namespace}]; !there {
			return notFound
		}
		if _, there := n.caches[b.Key()]; there {
			return string(store.Exists)
		}
		n.caches[b.Key()] = b
		n.cacheFeed = append(n.cacheFeed, model.CacheChange{Op: model.Created, Key: b.Key(), Cache: &b})
	case model.CacheKey:
		if _, there := n.caches[b]; !there {
			return notFound
		}
		n.drop(func(k model.ShardKey) bool {
			return k.Kind == model.CacheShard && k.TenantID == b.TenantID && k.Namespace == b.Namespace && k.Stream == b.Cache
		})
		n.dropCache(b)
	default:
		return n.applyCluster(body)
	}
	return ""
}

func (n *naive) applyCluster(body any) string {
	switch b := body.(type) {
	case registration:
		for id, other := range n.nodes {
			if id != b.NodeID && other.Spec.AdvertiseAddr == b.Spec.AdvertiseAddr {
				return string(store.AddressTaken)
			}
		}
		node := model.Node{NodeID: b.NodeID, Spec: b.Spec, Status: model.NodeStatus{
			Lifecycle: model.Live, LastHeartbeatAtMillis: n.now, RegisteredAtMillis: n.now,
		}}
		if old, there := n.nodes[b.NodeID]; there {
			node.Status.Incarnation, node.Status.RegisteredAtMillis = old.Status.Incarnation+1, old.Status.RegisteredAtMillis
			if old.Status.Lifecycle == model.Down || old.Status.Lifecycle == model.Left {
				n.token++
			}
		}
		n.setNode(model.Registered, node)
	case lifecycleBody:
		node, there := n.nodes[b.NodeID]
		if !there {
			return notFound
		}
		from := node.Status.Lifecycle
		node.Status.Lifecycle = b.To
		switch {
		case from == b.To:
		case (from == model.Down || from == model.Left) && (b.To == model.Live || b.To == model.Draining):
			return string(store.BadLifecycle)
		default:
			n.setNode(model.Updated, node)
		}
	case nodeID:
		node, there := n.nodes[b.NodeID]
		if !there {
			return notFound
		}
		if node.Status.Lifecycle == model.Live || node.Status.Lifecycle == model.Draining {
			return string(store.InUse)
		}
		for _, a := range n.assignments {
			if a.Leader == b.NodeID || slices.Contains(a.Replicas, b.NodeID) {
				return string(store.InUse)
			}
		}
		delete(n.nodes, b.NodeID)
		n.nodeFeed = append(n.nodeFeed, model.NodeChange{Op: model.Deregistered, NodeID: b.NodeID})
	case heartbeatBody:
		node, there := n.nodes[b.NodeID]
		if !there {
			return notFound
		}
		if b.Incarnation < node.Status.Incarnation {
			return string(store.OldIncarnation)
		}
		node.Status.LastHeartbeatAtMillis = n.now
		n.nodes[b.NodeID] = node
	case expiry:
		for _, id := range slices.Sorted(maps.Keys(n.nodes)) {
			node := n.nodes[id]
			if node.Status.Lifecycle != model.Down && node.Status.Lifecycle != model.Left && node.Status.LastHeartbeatAtMillis < b.BeforeMillis {
				node.Status.Lifecycle = model.Down
				n.setNode(model.Updated, node)
			}
		}
	case putBody:
		return n.put(b)
	case model.ShardKey:
		if _, there := n.assignments[b]; !there {
			return notFound
		}
		n.drop(func(k model.ShardKey) bool { return k == b })
	case reportsBody:
		for _, r := range b.Reports {
			if a, there := n.assignments[r.ShardKey]; there && a.Leader == b.Sender && a.Generation == r.Generation {
				r.ReportedAtMillis = n.now
				n.reports[r.ShardKey] = r
			}
		}
	default:
		panic(fmt.Sprintf("command %T", body))
	}
	return ""
}

func (n *naive) put(b putBody) string {
	a := b.Assignment
	old, there := n.assignments[a.ShardKey]
	shards, owned := uint32(0), false
	if s, ok := n.streams[model.StreamKey{TenantID: a.TenantID, Namespace: a.Namespace, Stream: a.Stream}]; ok && a.Kind == model.StreamShard {
		shards, owned = s.Shards, true
	}
	if c, ok := n.caches[model.CacheKey{TenantID: a.TenantID, Namespace: a.Namespace, Cache: a.Stream}]; ok && a.Kind == model.CacheShard {
		shards, owned = c.Shards, true
	}
	switch {
	case b.Token != n.token:
		return string(store.Fenced)
	case !owned:
		return notFound
	case a.Shard >= shards:
		return string(store.BadAssignment)
	}
	seen := map[string]bool{}
	for _, id := range append([]string{a.Leader}, a.Replicas...) {
		if _, known := n.nodes[id]; !known || seen[id] {
			return string(store.BadAssignment)
		}
		seen[id] = true
	}
	if there != (b.Expected != nil) || there && *b.Expected != old.Generation {
		return string(store.Stale)
	}
	op := model.Assigned
	if there {
		op, a.Generation = model.Updated, old.Generation+1
	}
	n.assignments[a.ShardKey] = a
	n.token++
	n.assignmentFeed = append(n.assignmentFeed, model.AssignmentChange{Op: op, Key: a.ShardKey, Assignment: &a})
	return string(store.Written)
}

func (n *naive) setNode(op model.Op, node model.Node) {
	n.nodes[node.NodeID] = node
	n.nodeFeed = append(n.nodeFeed, model.NodeChange{Op: op, NodeID: node.NodeID, Node: &node})
}

func (n *naive) clear(in func(tenant, namespace string) bool) {
	n.drop(func(k model.ShardKey) bool { return in(k.TenantID, k.Namespace) })
	for _, k := range slices.SortedFunc(maps.Keys(n.streams), func(a, b model.StreamKey) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Stream, b.Stream))
	}) {
		if in(k.TenantID, k.Namespace) {
			n.dropStream(k)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.caches), func(a, b model.CacheKey) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cache, b.Cache))
	}) {
		if in(k.TenantID, k.Namespace) {
			n.dropCache(k)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.namespaces), func(a, b model.NamespaceKey) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Namespace, b.Namespace))
	}) {
		if in(k.TenantID, k.Namespace) {
			delete(n.namespaces, k)
			n.namespaceFeed = append(n.namespaceFeed, model.NamespaceChange{Op: model.Deleted, Key: k})
		}
	}
}

func (n *naive) drop(gone func(model.ShardKey) bool) {
	for _, k := range slices.SortedFunc(maps.Keys(n.assignments), model.ShardKey.Compare) {
		if gone(k) {
			delete(n.assignments, k)
			delete(n.reports, k)
			n.assignmentFeed = append(n.assignmentFeed, model.AssignmentChange{Op: model.Unassigned, Key: k})
		}
	}
}

func (n *naive) dropStream(k model.StreamKey) {
	t := model.Tombstone{Kind: model.StreamShard, TenantID: k.TenantID, Namespace: k.Namespace, Name: k.Stream, UID: n.streams[k].UID, DeletedAtMillis: n.now}
	delete(n.streams, k)
	n.streamFeed = append(n.streamFeed, model.StreamChange{Op: model.Deleted, Key: k, Tombstone: &t})
}

func (n *naive) dropCache(k model.CacheKey) {
	t := model.Tombstone{Kind: model.CacheShard, TenantID: k.TenantID, Namespace: k.Namespace, Name: k.Cache, UID: n.caches[k].UID, DeletedAtMillis: n.now}
	delete(n.caches, k)
	n.cacheFeed = append(n.cacheFeed, model.CacheChange{Op: model.Deleted, Key: k, Tombstone: &t})
}
