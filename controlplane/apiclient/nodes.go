package apiclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/felixlog/felix/controlplane/model"
)

// A NodeView is a node and what placement makes of it (control plane 4.6).
type NodeView struct {
	Node      model.Node    `json:"node"`
	Placement NodePlacement `json:"placement"`
}

// NodePlacement says whether a node gets shards and may be forwarded to.
type NodePlacement struct {
	Eligible       bool     `json:"eligible"`
	Routable       bool     `json:"routable"`
	Reasons        []string `json:"reasons"` // why it is not eligible
	HeartbeatAgeMS uint64   `json:"heartbeat_age_ms"`
}

// A NodeFilter narrows a list of nodes; what is empty does not.
type NodeFilter struct {
	Lifecycle model.Lifecycle
	Region    string
	Labels    map[string]string // all of them
}

// Nodes are the registered brokers.
func (c *Client) Nodes(ctx context.Context, f NodeFilter) ([]NodeView, error) {
	query := make(url.Values)
	if f.Lifecycle != "" {
		query.Set("lifecycle", string(f.Lifecycle))
	}
	if f.Region != "" {
		query.Set("region", f.Region)
	}
	for key, value := range f.Labels {
		query.Add("label", key+"="+value)
	}
	return list[NodeView](ctx, c, path("v1", "nodes"), query)
}

// Node is one broker.
func (c *Client) Node(ctx context.Context, id string) (NodeView, error) {
	var v NodeView
	err := c.get(ctx, path("v1", "nodes", id), nil, &v)
	return v, err
}

// A Registration is what a broker says of itself when it joins (control plane
// 6.1).
type Registration struct {
	NodeID        string            `json:"node_id"`
	AdvertiseAddr string            `json:"advertise_addr"`
	ClientAddr    string            `json:"client_addr,omitempty"`
	KafkaAddr     string            `json:"kafka_addr,omitempty"`
	Region        string            `json:"region"`
	Zone          string            `json:"zone,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Capacity      *model.Capacity   `json:"capacity,omitempty"`
	Features      []string          `json:"features,omitempty"`
}

// Registered is the answer to a registration.
type Registered struct {
	Node                model.Node `json:"node"`
	HeartbeatIntervalMS uint64     `json:"heartbeat_interval_ms"`
	ExpiryTimeoutMS     uint64     `json:"expiry_timeout_ms"`
	FleetFeatures       []string   `json:"fleet_features"`
}

// RegisterNode joins a broker, or joins it again: its incarnation grows by one
// each time.
func (c *Client) RegisterNode(ctx context.Context, r Registration) (Registered, error) {
	var got Registered
	err := c.post(ctx, path("v1", "nodes"), r, &got)
	return got, err
}

// PatchNode changes what an operator may change of a node.
func (c *Client) PatchNode(ctx context.Context, id string, p model.NodePatch) (model.Node, error) {
	var n model.Node
	err := c.patch(ctx, path("v1", "nodes", id), p, &n)
	return n, err
}

// DrainNode asks for the node's shards to be moved away.
func (c *Client) DrainNode(ctx context.Context, id string) (model.Node, error) {
	var n model.Node
	err := c.post(ctx, path("v1", "nodes", id, "drain"), nil, &n)
	return n, err
}

// DeregisterNode says that the node has left.
func (c *Client) DeregisterNode(ctx context.Context, id string) (model.Node, error) {
	var n model.Node
	err := c.post(ctx, path("v1", "nodes", id, "deregister"), nil, &n)
	return n, err
}

// DeleteNode forgets a node that serves nothing.
func (c *Client) DeleteNode(ctx context.Context, id string) error {
	return c.remove(ctx, path("v1", "nodes", id), nil, nil, nil)
}

// A Heartbeat is the answer to one (control plane 6.2).
type Heartbeat struct {
	NodeID              string          `json:"node_id"`
	Lifecycle           model.Lifecycle `json:"lifecycle"`
	HeartbeatIntervalMS uint64          `json:"heartbeat_interval_ms"`
	ExpiryTimeoutMS     uint64          `json:"expiry_timeout_ms"`
	FleetFeatures       []string        `json:"fleet_features"`
}

// Heartbeat says that a registration is alive.
func (c *Client) Heartbeat(ctx context.Context, id string, incarnation uint64) (Heartbeat, error) {
	var h Heartbeat
	body := struct {
		Incarnation uint64 `json:"incarnation"`
	}{incarnation}
	err := c.post(ctx, path("v1", "nodes", id, "heartbeat"), body, &h)
	return h, err
}

// A ShardReport is what a leader says of one shard (control plane 6.5).
type ShardReport struct {
	model.ShardKey
	Generation     uint64          `json:"generation"`
	CaughtUp       []string        `json:"caught_up"`
	ReplicaOffsets []ReplicaOffset `json:"replica_offsets,omitempty"`
	Drained        bool            `json:"drained"`
	LeaderOffset   *uint64         `json:"leader_offset,omitempty"`
}

// A ReplicaOffset is the next offset a follower has on its disk.
type ReplicaOffset struct {
	NodeID        string `json:"node_id"`
	DurableOffset uint64 `json:"durable_offset"`
}

// A ShardOutcome is what became of one shard's report.
type ShardOutcome struct {
	model.ShardKey
	Generation uint64              `json:"generation"`
	Outcome    model.ReportOutcome `json:"outcome"`
}

// ReportShards stores what a leader reports: one outcome a shard, in order.
// That some were refused is no error.
func (c *Client) ReportShards(ctx context.Context, id string, incarnation uint64, shards []ShardReport) ([]ShardOutcome, error) {
	body := struct {
		Incarnation uint64        `json:"incarnation"`
		Shards      []ShardReport `json:"shards"`
	}{incarnation, shards}
	var got outcomes
	err := c.do(ctx, call{
		method: http.MethodPost, path: path("v1", "nodes", id, "replica-status"), body: body, into: &got, idempotent: true,
		also: http.StatusConflict,
	})
	return got, err
}

// outcomes are the body of the answer, whether or not all were accepted.
type outcomes []ShardOutcome

func (o *outcomes) UnmarshalJSON(data []byte) error {
	var body struct {
		Shards *[]ShardOutcome `json:"shards"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	if body.Shards == nil {
		return &missingError{"shards"}
	}
	*o = *body.Shards
	return nil
}
