package model

// Lifecycle is what the control plane thinks of a node.
type Lifecycle string

// The lifecycles (control plane 3.1).
const (
	Live     Lifecycle = "live"
	Draining Lifecycle = "draining"
	Down     Lifecycle = "down" // missed its heartbeats
	Left     Lifecycle = "left" // said good-bye
)

// Serving says whether a node of this lifecycle may serve what it leads.
func (l Lifecycle) Serving() bool { return l == Live || l == Draining }

// A Node is one broker identity.
type Node struct {
	NodeID string     `json:"node_id"`
	Spec   NodeSpec   `json:"spec"`
	Status NodeStatus `json:"status"`
}

// NodeSpec is what a broker says of itself.
type NodeSpec struct {
	AdvertiseAddr string            `json:"advertise_addr"` // ip:port between brokers, unique in the cluster
	ClientAddr    string            `json:"client_addr,omitempty"`
	KafkaAddr     string            `json:"kafka_addr,omitempty"`
	Region        string            `json:"region"`
	Zone          string            `json:"zone,omitempty"` // what fails together; copies are spread over zones
	Labels        map[string]string `json:"labels"`
	Capacity      Capacity          `json:"capacity"`
	Features      []string          `json:"features,omitempty"` // of the fleet, that the broker implements; sorted
}

// Capacity bounds what placement gives a node.
type Capacity struct {
	MaxShards *uint32 `json:"max_shards"` // roles, as leader or follower; nil is no bound
	Weight    uint32  `json:"weight"`     // 0 takes the node out of placement; other values mean nothing yet
}

// NodeStatus is what the control plane knows of a node.
type NodeStatus struct {
	Lifecycle             Lifecycle `json:"lifecycle"`
	LastHeartbeatAtMillis uint64    `json:"last_heartbeat_at_millis"`
	RegisteredAtMillis    uint64    `json:"registered_at_millis"`
	Incarnation           uint64    `json:"incarnation"` // registrations so far, less one
}

// A NodePatch changes what an operator may change of a node; nil leaves a field
// as it is.
type NodePatch struct {
	Region    *string            `json:"region,omitempty"`
	Labels    *map[string]string `json:"labels,omitempty"`
	Capacity  *Capacity          `json:"capacity,omitempty"`
	Lifecycle *Lifecycle         `json:"lifecycle,omitempty"` // live or draining
}

// An Expired is a node that a sweep took for down.
type Expired struct {
	Node Node      `json:"node"`
	From Lifecycle `json:"from"` // what it was
}
