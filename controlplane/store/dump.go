package store

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
)

// CheckDump says why a dump cannot be imported: it has a form that this program
// does not read, or its assignments break the rules of control plane 7.9
// against the other records in it. What a dump lacks is not what a caller named,
// so that the error is neither a NotFoundError nor a ConflictError.
func CheckDump(d *model.Dump) error {
	if d.Version != model.DumpVersion {
		return fmt.Errorf("dump has version %d, this program reads version %d", d.Version, model.DumpVersion)
	}
	shards := make(map[model.ShardKey]uint32, len(d.Streams)+len(d.Caches)) // by owner: the key of its shard 0
	for _, s := range d.Streams {
		shards[model.ShardKey{TenantID: s.TenantID, Namespace: s.Namespace, Stream: s.Stream, Kind: model.StreamShard}] = s.Shards
	}
	for _, c := range d.Caches {
		shards[model.ShardKey{TenantID: c.TenantID, Namespace: c.Namespace, Stream: c.Cache, Kind: model.CacheShard}] = c.Shards
	}
	nodes := make(map[string]bool, len(d.Nodes))
	for _, n := range d.Nodes {
		nodes[n.NodeID] = true
	}
	for _, a := range d.Assignments {
		owner := a.ShardKey
		owner.Shard = 0
		n, there := shards[owner]
		err := NoOwner(a.Kind)
		if there {
			err = CheckAssignment(a, n, func(id string) bool { return nodes[id] })
		}
		if err != nil {
			return fmt.Errorf("dump contradicts itself: assignment of %s: %v", a.ShardKey, err)
		}
	}
	return nil
}
