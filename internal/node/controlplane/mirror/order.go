package mirror

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// order tells the target which shards are its own. Leaving comes first.
func (m *Mirror) order(try tryFunc) {
	if m.o.NodeID == "" {
		return
	}
	for k := range among(m.looked.all, m.looked.shards, m.served.shards) {
		have := m.served.shards[k]
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
		} else {
			m.pic.touched.shard(k)
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
		} else {
			m.pic.touched.shard(k)
		}
	}
}

// ours are the shards to look at that are assigned to this broker, of what it
// serves, in their order.
func (m *Mirror) ours() []model.ShardKey {
	var keys []model.ShardKey
	for k := range among(m.looked.all, m.looked.shards, m.pic.assignments) {
		if m.pic.assignments[k].Leader != m.o.NodeID {
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
