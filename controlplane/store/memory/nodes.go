package memory

import (
	"reflect"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

type nodeID struct {
	NodeID string `json:"node_id"`
}

type registration struct {
	NodeID string         `json:"node_id"`
	Spec   model.NodeSpec `json:"spec"`
}

// registerNode fences the planners where it revives a node: a pass that read it
// as down must not give away what it serves again.
func (s *State) registerNode(b registration) (model.Node, error) {
	if other, taken := s.addresses[b.Spec.AdvertiseAddr]; taken && other != b.NodeID {
		return model.Node{}, store.Conflict(store.AddressTaken, "address %s is advertised by another node", b.Spec.AdvertiseAddr)
	}
	if err := store.CheckFeatures(s.features, b.Spec.Features); err != nil {
		return model.Node{}, err
	}
	n := model.Node{NodeID: b.NodeID, Spec: b.Spec}
	if n.Spec.Labels == nil {
		n.Spec.Labels = map[string]string{}
	}
	n.Status = model.NodeStatus{Lifecycle: model.Live, LastHeartbeatAtMillis: s.now, RegisteredAtMillis: s.now}
	if old, ok := s.nodes.get(b.NodeID); ok {
		n.Status.RegisteredAtMillis = old.Status.RegisteredAtMillis
		n.Status.Incarnation = old.Status.Incarnation + 1
		delete(s.addresses, old.Spec.AdvertiseAddr)
		if !old.Status.Lifecycle.Serving() {
			s.token++
		}
	}
	s.addresses[n.Spec.AdvertiseAddr] = n.NodeID
	s.publishNode(model.Registered, n)
	return n, nil
}

// publishNode stores a node, and a change of it.
func (s *State) publishNode(op model.Op, n model.Node) {
	s.nodes.put(&n)
	s.nodeFeed.add(func(seq uint64) model.NodeChange {
		return model.NodeChange{Seq: seq, Op: op, NodeID: n.NodeID, Node: &n}
	})
}

type nodePatch struct {
	NodeID string          `json:"node_id"`
	Patch  model.NodePatch `json:"patch"`
}

// patchNode publishes nothing where nothing changes.
func (s *State) patchNode(b nodePatch) (model.Node, error) {
	old, ok := s.nodes.get(b.NodeID)
	if !ok {
		return model.Node{}, missing("node")
	}
	n, err := store.PatchedNode(*old, b.Patch)
	if err != nil {
		return model.Node{}, err
	}
	if !reflect.DeepEqual(n, *old) {
		s.publishNode(model.Updated, n)
	}
	return n, nil
}

func (s *State) deleteNode(b nodeID) error {
	n, ok := s.nodes.get(b.NodeID)
	if !ok {
		return missing("node")
	}
	if err := store.CheckDeletion(*n, len(s.shardsOf[b.NodeID])); err != nil {
		return err
	}
	s.nodes.remove(b.NodeID)
	delete(s.addresses, n.Spec.AdvertiseAddr)
	s.nodeFeed.add(func(seq uint64) model.NodeChange {
		return model.NodeChange{Seq: seq, Op: model.Deregistered, NodeID: b.NodeID}
	})
	return nil
}
