package memory

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

type lifecycleBody struct {
	NodeID string          `json:"node_id"`
	To     model.Lifecycle `json:"to"`
}

type lifecycleResult struct {
	Node    model.Node `json:"node"`
	Changed bool       `json:"changed"`
}

func (s *State) setLifecycle(b lifecycleBody) (lifecycleResult, error) {
	old, ok := s.nodes.get(b.NodeID)
	if !ok {
		return lifecycleResult{}, missing("node")
	}
	if err := store.CheckLifecycle(old.Status.Lifecycle, b.To); err != nil {
		return lifecycleResult{}, err
	}
	if old.Status.Lifecycle == b.To {
		return lifecycleResult{Node: *old}, nil
	}
	n := *old
	n.Status.Lifecycle = b.To
	s.publishNode(model.Updated, n)
	return lifecycleResult{Node: n, Changed: true}, nil
}

type heartbeatBody struct {
	NodeID      string `json:"node_id"`
	Incarnation uint64 `json:"incarnation"`
}

// heartbeat is no change, whatever it finds (control plane 6.2).
func (s *State) heartbeat(b heartbeatBody) (model.Node, error) {
	old, ok := s.nodes.get(b.NodeID)
	if !ok {
		return model.Node{}, missing("node")
	}
	if err := store.CheckIncarnation(b.Incarnation, old.Status.Incarnation); err != nil {
		return model.Node{}, err
	}
	n := *old
	n.Status.LastHeartbeatAtMillis = max(n.Status.LastHeartbeatAtMillis, s.now)
	s.nodes.put(&n)
	return n, nil
}

type expiry struct {
	BeforeMillis uint64 `json:"before_millis"`
}

func expired(n *model.Node, beforeMillis uint64) bool {
	return n.Status.Lifecycle.Serving() && n.Status.LastHeartbeatAtMillis < beforeMillis
}

func (s *State) expireStale(b expiry) ([]model.Expired, error) {
	list := []model.Expired{}
	for _, old := range s.nodes.all() {
		if !expired(old, b.BeforeMillis) {
			continue
		}
		n := *old
		n.Status.Lifecycle = model.Down
		s.publishNode(model.Updated, n)
		list = append(list, model.Expired{Node: n, From: old.Status.Lifecycle})
	}
	return list, nil
}
