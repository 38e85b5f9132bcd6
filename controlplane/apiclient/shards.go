package apiclient

import (
	"context"
	"net/url"
	"strconv"

	"github.com/felixlog/felix/controlplane/model"
)

// Assignments are who serves what (control plane 4.7); with a leader, what
// that node leads.
func (c *Client) Assignments(ctx context.Context, leader string) ([]model.Assignment, error) {
	query := make(url.Values)
	if leader != "" {
		query.Set("leader", leader)
	}
	return list[model.Assignment](ctx, c, path("v1", "shard-assignments"), query)
}

// Moves are the moves under way (control plane 4.8).
type Moves struct {
	Paused bool        `json:"paused"`
	Items  []ShardMove `json:"items"`
}

// A ShardMove is one of them.
type ShardMove struct {
	model.ShardKey
	Leader          string           `json:"leader"`
	Destination     string           `json:"destination,omitempty"`
	Replacing       string           `json:"replacing,omitempty"`
	Step            string           `json:"step"` // staged, fenced, replacing or restoring
	Reason          model.MoveReason `json:"reason,omitempty"`
	StartedAtMillis *uint64          `json:"started_at_millis,omitempty"`
	Generation      uint64           `json:"generation"`
	LagRecords      *uint64          `json:"lag_records,omitempty"`
	CaughtUp        bool             `json:"caught_up"`
	Drained         bool             `json:"drained"`
}

// Moves lists the moves under way.
func (c *Client) Moves(ctx context.Context) (Moves, error) {
	var m Moves
	err := c.get(ctx, path("v1", "shard-moves"), nil, &m)
	return m, err
}

// A MoveResult is what an operator's order did.
type MoveResult struct {
	Step       string           `json:"step"`
	Assignment model.Assignment `json:"assignment"`
	DryRun     bool             `json:"dry_run,omitempty"`
}

// StartMove moves a shard to a node; a dry run only says what would be done.
// Refusals have the codes of control plane 8.7.
func (c *Client) StartMove(ctx context.Context, k model.ShardKey, destination string, dryRun bool) (MoveResult, error) {
	body := struct {
		model.ShardKey
		Destination string `json:"destination"`
		DryRun      bool   `json:"dry_run,omitempty"`
	}{k, destination, dryRun}
	var r MoveResult
	err := c.create(ctx, path("v1", "shard-moves"), body, &r)
	return r, err
}

// CancelMove takes a move back (control plane 8.6).
func (c *Client) CancelMove(ctx context.Context, k model.ShardKey) (MoveResult, error) {
	var r MoveResult
	query := url.Values{"kind": {string(k.Kind)}}
	err := c.remove(ctx, shardPath("shard-moves", k), query, nil, &r)
	return r, err
}

// Abandon gives up the lost log of a shard, so that it can be placed anew and
// empty.
func (c *Client) Abandon(ctx context.Context, k model.ShardKey) (MoveResult, error) {
	var r MoveResult
	segments := []string{"v1", "placement", "abandon", k.TenantID, k.Namespace, k.Stream, strconv.FormatUint(uint64(k.Shard), 10)}
	target := path(segments...) + "?" + url.Values{"kind": {string(k.Kind)}}.Encode()
	err := c.create(ctx, target, nil, &r)
	return r, err
}

func shardPath(root string, k model.ShardKey) string {
	return path("v1", root, k.TenantID, k.Namespace, k.Stream, strconv.FormatUint(uint64(k.Shard), 10))
}

// A Plan is what the next placement pass would do; shards that stay as they
// are, are left out.
type Plan struct {
	Paused bool           `json:"paused"`
	Items  []PlannedShard `json:"items"`
}

// A PlannedShard is one decision of a plan.
type PlannedShard struct {
	model.ShardKey
	Action     string            `json:"action"` // place, a step of a move, waiting or unplaceable
	Assignment *model.Assignment `json:"assignment,omitempty"`
	Reason     string            `json:"reason,omitempty"`
}

// Plan asks what the next pass would do.
func (c *Client) Plan(ctx context.Context) (Plan, error) {
	var p Plan
	err := c.get(ctx, path("v1", "placement", "plan"), nil, &p)
	return p, err
}

// PauseMoves stops moves from starting, or lets them (control plane 8.8). The
// answer is how it stands.
func (c *Client) PauseMoves(ctx context.Context, paused bool) (bool, error) {
	verb := "resume"
	if paused {
		verb = "pause"
	}
	var got struct {
		Paused bool `json:"paused"`
	}
	err := c.post(ctx, path("v1", "placement", verb), nil, &got)
	return got.Paused, err
}

// Replication is how many copies shards have.
type Replication struct {
	UnderReplicated uint64            `json:"under_replicated"`
	Items           []ReplicatedShard `json:"items"`
}

// A ReplicatedShard is one of them.
type ReplicatedShard struct {
	model.ShardKey
	Leader          string `json:"leader"`
	DesiredReplicas uint32 `json:"desired_replicas"`
	CurrentReplicas uint32 `json:"current_replicas"`
	UnderReplicated bool   `json:"under_replicated"`
	Unavailable     bool   `json:"unavailable,omitempty"`
	Restoring       string `json:"restoring,omitempty"`
}

// Replication lists how many copies shards have, and should.
func (c *Client) Replication(ctx context.Context) (Replication, error) {
	var r Replication
	err := c.get(ctx, path("v1", "placement", "replication"), nil, &r)
	return r, err
}
