package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/controlplane/store"
)

// RegisterNodeRequest is what a broker says of itself (control plane 6.1).
type RegisterNodeRequest struct {
	NodeID        string            `json:"node_id"`
	AdvertiseAddr string            `json:"advertise_addr" doc:"ip:port between brokers, unique in the cluster."`
	ClientAddr    string            `json:"client_addr" required:"false" nullable:"true" doc:"ip:port for clients; absent, clients are not sent here."`
	KafkaAddr     string            `json:"kafka_addr" required:"false" nullable:"true" doc:"host:port."`
	Region        string            `json:"region"`
	Zone          string            `json:"zone" required:"false" nullable:"true" doc:"What fails together."`
	Labels        map[string]string `json:"labels" required:"false"`
	Capacity      *CapacityRequest  `json:"capacity" required:"false"`
	Features      []string          `json:"features" required:"false" doc:"Features of the fleet that the broker implements."`
}

func (r RegisterNodeRequest) spec() model.NodeSpec {
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	features := slices.Clone(r.Features)
	slices.Sort(features)
	return model.NodeSpec{
		AdvertiseAddr: r.AdvertiseAddr, ClientAddr: r.ClientAddr, KafkaAddr: r.KafkaAddr, Region: r.Region, Zone: r.Zone,
		Labels: labels, Capacity: r.Capacity.capacity(), Features: slices.Compact(features),
	}
}

// RegisterNodeResponse tells a broker how to stay in the cluster.
type RegisterNodeResponse struct {
	Node                model.Node `json:"node"`
	HeartbeatIntervalMS int64      `json:"heartbeat_interval_ms"`
	ExpiryTimeoutMS     int64      `json:"expiry_timeout_ms"`
	FleetFeatures       []string   `json:"fleet_features"`
}

// HeartbeatRequest says that a registration is alive.
type HeartbeatRequest struct {
	Incarnation uint64 `json:"incarnation"`
}

// HeartbeatResponse renews a lease, or says that there is none (control plane
// 6.2).
type HeartbeatResponse struct {
	NodeID              string          `json:"node_id"`
	Lifecycle           model.Lifecycle `json:"lifecycle"`
	HeartbeatIntervalMS int64           `json:"heartbeat_interval_ms"`
	ExpiryTimeoutMS     int64           `json:"expiry_timeout_ms"`
	FleetFeatures       []string        `json:"fleet_features"`
}

// membershipRoutes are those by which brokers join, stay and leave.
func (s *surface) membershipRoutes() {
	const tag, one = "nodes", "/v1/nodes/{node_id}"
	add(s, route{
		id: "register-node", method: http.MethodPost, path: "/v1/nodes", tag: tag, summary: "Join the cluster, or join it again",
		who: anyTenant, hasBody: true, refuses: []int{http.StatusConflict},
	}, func(ctx context.Context, in *struct{ Body RegisterNodeRequest }) (*struct{ Body RegisterNodeResponse }, error) {
		if err := check(callerOf(ctx), rbac.NodeManage, rbac.Node(in.Body.NodeID)); err != nil {
			return nil, err
		}
		n, err := s.register(ctx, in.Body)
		if err != nil {
			return nil, err
		}
		features, err := s.o.Store.EnabledFeatures(ctx)
		if err != nil {
			return nil, err
		}
		return &struct{ Body RegisterNodeResponse }{RegisterNodeResponse{
			Node: n, HeartbeatIntervalMS: millis(s.o.HeartbeatInterval), ExpiryTimeoutMS: millis(s.o.ExpiryTimeout), FleetFeatures: features,
		}}, nil
	})
	add(s, route{
		id: "heartbeat", method: http.MethodPost, path: one + "/heartbeat", tag: tag, summary: "Renew a broker's lease",
		about: "The answer's lifecycle says whether there is one: a broker that reads anything but live or draining must stop serving and register again.",
		who:   anyTenant, allow: onNode(), hasBody: true, refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InNode
		Body HeartbeatRequest
	}) (*struct{ Body HeartbeatResponse }, error) {
		n, err := s.o.Store.Heartbeat(ctx, in.NodeID, in.Body.Incarnation)
		if err != nil {
			return nil, err
		}
		features, err := s.o.Store.EnabledFeatures(ctx)
		if err != nil {
			return nil, err
		}
		return &struct{ Body HeartbeatResponse }{HeartbeatResponse{
			NodeID: n.NodeID, Lifecycle: n.Status.Lifecycle,
			HeartbeatIntervalMS: millis(s.o.HeartbeatInterval), ExpiryTimeoutMS: millis(s.o.ExpiryTimeout), FleetFeatures: features,
		}}, nil
	})
	s.lifecycleRoute("drain", "Ask for a broker's shards to be moved away", model.Draining, http.StatusConflict)
	s.lifecycleRoute("deregister", "Say that a broker has left", model.Left)
}

// lifecycleRoute moves a node; one that is there already is no error.
func (s *surface) lifecycleRoute(verb, summary string, to model.Lifecycle, refuses ...int) {
	add(s, route{
		id: verb + "-node", method: http.MethodPost, path: "/v1/nodes/{node_id}/" + verb, tag: "nodes", summary: summary,
		who: anyTenant, allow: onNode(), refuses: append(refuses, http.StatusNotFound),
	}, func(ctx context.Context, in *InNode) (*nodeOut, error) {
		before, err := s.nodeBefore(ctx, in.NodeID)
		if err != nil {
			return nil, err
		}
		n, changed, err := s.o.Store.SetLifecycle(ctx, in.NodeID, to)
		if err != nil {
			return nil, err
		}
		if changed {
			s.nodeChanged(before, n)
		}
		return &nodeOut{n}, nil
	})
}

// register checks and stores a registration, and counts what it was.
func (s *surface) register(ctx context.Context, r RegisterNodeRequest) (model.Node, error) {
	spec := r.spec()
	if err := checkNode(r.NodeID, spec); err != nil {
		s.o.Observer.NodeRegistered("rejected")
		return model.Node{}, refusedSpec(err)
	}
	before, err := s.nodeBefore(ctx, r.NodeID)
	if err != nil {
		return model.Node{}, err
	}
	n, err := s.o.Store.RegisterNode(ctx, r.NodeID, spec)
	if err != nil {
		if _, refused := errors.AsType[*store.ConflictError](err); refused {
			s.o.Observer.NodeRegistered("rejected")
		}
		return model.Node{}, err
	}
	outcome := "restart"
	if n.Status.Incarnation == 0 {
		outcome = "new"
	}
	s.o.Observer.NodeRegistered(outcome)
	s.o.Observer.NodeChanged(model.Registered)
	if before != nil && before.Status.Lifecycle != model.Live {
		s.o.Observer.NodeTransitioned(before.Status.Lifecycle, model.Live)
	}
	s.o.Planner.Wake()
	return n, nil
}

func millis(d time.Duration) int64 { return d.Milliseconds() }
