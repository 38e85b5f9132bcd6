package planner

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// Plan is what a pass would do now. It writes nothing.
func (p *Planner) Plan(ctx context.Context) (PlanView, error) {
	r, err := p.read(ctx)
	if err != nil {
		return PlanView{}, err
	}
	v := PlanView{Paused: r.input.Paused, Items: []PlannedShard{}}
	for _, d := range placement.Plan(r.input) {
		if d.Action == placement.Keep {
			continue
		}
		v.Items = append(v.Items, PlannedShard{
			ShardKey: d.Key, Action: string(d.Action), Assignment: d.Assignment, Code: string(d.Code), Reason: d.Reason,
		})
	}
	return v, nil
}

// Moves is what is in flight.
func (p *Planner) Moves(ctx context.Context) (MovesView, error) {
	r, err := p.read(ctx)
	if err != nil {
		return MovesView{}, err
	}
	v := MovesView{Paused: r.input.Paused, Items: []ShardMove{}}
	for _, m := range placement.Moves(r.input) {
		a := m.Assignment
		v.Items = append(v.Items, ShardMove{
			ShardKey: a.ShardKey, Leader: a.Leader, Destination: m.Destination, Replacing: m.Replacing, Step: m.Step,
			Reason: a.MoveReason, StartedAtMillis: a.MoveStartedAtMillis, Generation: a.Generation,
			LagRecords: m.LagRecords, CaughtUp: m.CaughtUp, Drained: m.Drained,
		})
	}
	return v, nil
}

// Replication is what lacks copies, or somebody who serves it.
func (p *Planner) Replication(ctx context.Context) (ReplicationView, error) {
	r, err := p.read(ctx)
	if err != nil {
		return ReplicationView{}, err
	}
	lacking := placement.Lacking(r.input)
	v := ReplicationView{UnderReplicated: underReplicated(lacking), Items: make([]ShardReplication, 0, len(lacking))}
	for _, c := range lacking {
		v.Items = append(v.Items, ShardReplication{
			ShardKey: c.Key, Leader: c.Leader, DesiredReplicas: uint32(c.Desired), CurrentReplicas: uint32(c.Current),
			UnderReplicated: c.Current < c.Desired, Unavailable: c.Unavailable, Restoring: c.Restoring,
		})
	}
	return v, nil
}

func underReplicated(lacking []placement.Copies) int {
	n := 0
	for _, c := range lacking {
		if c.Current < c.Desired {
			n++
		}
	}
	return n
}

// NodeView is a node with what placement thinks of it at nowMillis on the
// store's clock (control plane 4.6).
func (p *Planner) NodeView(n model.Node, nowMillis uint64) NodeView {
	status := n.Status
	age := nowMillis - min(status.LastHeartbeatAtMillis, nowMillis)
	late := age > uint64(p.o.Expiry.Milliseconds())
	reasons := []string{}
	switch status.Lifecycle {
	case model.Draining:
		reasons = append(reasons, "the broker is draining: it gives its shards away and is given none")
	case model.Down:
		reasons = append(reasons, "the broker missed its heartbeats and is down: it has to register again")
	case model.Left:
		reasons = append(reasons, "the broker has left: it has to register again")
	}
	if late && status.Lifecycle.Serving() {
		reasons = append(reasons, "the last heartbeat is older than the timeout: the next sweep takes the broker for down")
	}
	if n.Spec.Capacity.Weight == 0 {
		reasons = append(reasons, "the weight is zero: the broker keeps its shards and is given none")
	}
	return NodeView{Node: n, Placement: NodePlacement{
		Eligible: len(reasons) == 0, Routable: status.Lifecycle.Serving() && !late,
		Reasons: reasons, HeartbeatAgeMS: age,
	}}
}
