package model

import (
	"cmp"
	"fmt"
)

// ShardKind tells shards of streams from shards of caches: a stream and a
// cache may share a name and are unrelated.
type ShardKind string

// The kinds of shards.
const (
	StreamShard ShardKind = "stream"
	CacheShard  ShardKind = "cache"
)

// A ShardKey names one shard. Stream holds the name of the stream or cache.
type ShardKey struct {
	TenantID  string    `json:"tenant_id"`
	Namespace string    `json:"namespace"`
	Stream    string    `json:"stream"`
	Shard     uint32    `json:"shard"`
	Kind      ShardKind `json:"kind"`
}

// String is tenant/namespace/name/shard, with the kind where it is a cache's.
func (k ShardKey) String() string {
	s := fmt.Sprintf("%s/%s/%s/%d", k.TenantID, k.Namespace, k.Stream, k.Shard)
	if k.Kind == CacheShard {
		return s + " (cache)"
	}
	return s
}

// Compare orders keys by tenant, namespace, name, shard and kind.
func (k ShardKey) Compare(o ShardKey) int {
	return cmp.Or(
		cmp.Compare(k.TenantID, o.TenantID), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Stream, o.Stream),
		cmp.Compare(k.Shard, o.Shard), cmp.Compare(k.Kind, o.Kind),
	)
}

// ShardState is how far an assignment is.
type ShardState string

// The states of an assignment. Assigning is the healthy steady state: no broker
// reports itself active (control plane 3.1).
const (
	Assigning     ShardState = "assigning"
	Active        ShardState = "active"
	ShardDraining ShardState = "draining"
)

// MoveReason says why a shard moves.
type MoveReason string

// The reasons of moves.
const (
	MoveDrain    MoveReason = "drain"
	MoveBalance  MoveReason = "balance"
	MoveOperator MoveReason = "operator"
	MoveReplace  MoveReason = "replace"
	MoveRestore  MoveReason = "restore"
)

// An Assignment says who serves a shard. Its generation is set by the store: 0
// on the first write, one more on every later one.
type Assignment struct {
	ShardKey
	Leader              string     `json:"leader"`
	Replicas            []string   `json:"replicas"` // followers, without the leader
	Generation          uint64     `json:"generation"`
	State               ShardState `json:"state"`
	Successor           string     `json:"successor,omitempty"` // where the shard moves to; one of Replicas
	Joining             string     `json:"joining,omitempty"`   // a follower being copied in; one of Replicas
	MoveStartedAtMillis *uint64    `json:"move_started_at_millis,omitempty"`
	MoveReason          MoveReason `json:"move_reason,omitempty"`
	Routing             Routing    `json:"routing,omitempty"`
}

// A ReplicaReport is what a leader last said of its followers (control plane
// 6.5). Offsets hold the next offset each follower has on its disk.
type ReplicaReport struct {
	ShardKey
	Generation       uint64            `json:"generation"`
	CaughtUp         []string          `json:"caught_up"` // sorted
	Offsets          map[string]uint64 `json:"offsets"`
	ReportedAtMillis uint64            `json:"reported_at_millis"`
	Drained          bool              `json:"drained"`
	LeaderOffset     *uint64           `json:"leader_offset,omitempty"`
}

// ReportOutcome is what became of one shard's report.
type ReportOutcome string

// The outcomes of reports; all but the first mean that it was not stored.
const (
	ReportAccepted         ReportOutcome = "accepted"
	ReportNotLeader        ReportOutcome = "not_leader"
	ReportFutureGeneration ReportOutcome = "future_generation"
	ReportStale            ReportOutcome = "stale" // below the assignment's generation
	ReportUnassigned       ReportOutcome = "unassigned"
)
