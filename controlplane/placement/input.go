package placement

import "github.com/felixlog/felix/controlplane/model"

// Input is everything that a plan rests on. Plan reads it only.
type Input struct {
	Streams     []model.Stream
	Caches      []model.Cache
	Nodes       []model.Node
	Assignments []model.Assignment
	// Reports are those that are fresh (control plane 6.5), of any generation.
	Reports []model.ReplicaReport
	Bridges []model.Bridge
	Policy  Policy
	// Paused keeps moves from starting (control plane 8.8).
	Paused bool
	// NowMillis is the store's clock.
	NowMillis uint64
}
