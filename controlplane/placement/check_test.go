package placement

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// check looks at one decision that is to be written.
func (w *world) check(d Decision) {
	a, old := d.Assignment, w.placed[d.Key]
	w.checkForm(d, a, old)
	w.checkNewcomers(d, a, old)
	if old != nil {
		w.checkLeader(d, a, old)
		w.checkCopies(d, a, old)
	} else if len(a.Replicas) > w.shards[d.Key].factor-1 {
		w.fail("%v: placed on too many nodes: %+v", d.Key, a)
	}
}

// checkForm holds control plane 7.9.
func (w *world) checkForm(d Decision, a, old *model.Assignment) {
	if a.ShardKey != d.Key {
		w.fail("%v: an assignment of %v", d.Key, a.ShardKey)
	}
	for i, m := range members(a) {
		if w.node(m) == nil {
			w.fail("%v: %s names %q, which is not registered", d.Key, d.Action, m)
		}
		if slices.Contains(members(a)[:i], m) {
			w.fail("%v: %s names %s twice", d.Key, d.Action, m)
		}
	}
	for _, m := range []string{a.Successor, a.Joining} {
		if m != "" && !slices.Contains(a.Replicas, m) {
			w.fail("%v: %s: %s is no follower", d.Key, d.Action, m)
		}
	}
	if a.Successor != "" && a.Joining != "" {
		w.fail("%v: two copies at once", d.Key)
	}
	if (old == nil) != (d.Expected == nil) || old != nil && *d.Expected != old.Generation {
		w.fail("%v: expects another generation than there is", d.Key)
	}
	if !d.Action.Step() && d.Action != Place {
		w.fail("%v: %s writes", d.Key, d.Action)
	}
}

// checkNewcomers holds that whoever is given a copy may be given one.
func (w *world) checkNewcomers(d Decision, a, old *model.Assignment) {
	for _, m := range members(a) {
		if old != nil && slices.Contains(members(old), m) {
			continue
		}
		n := w.node(m)
		// An operator may choose a node that placement would not.
		if n.Status.Lifecycle != model.Live || n.Spec.Capacity.Weight == 0 && a.MoveReason != model.MoveOperator {
			w.fail("%v: %s gives a copy to %s, which is not eligible", d.Key, d.Action, m)
		}
		if !w.allowed(d.Key, n) {
			w.fail("%v: %s gives a copy to %s in region %s", d.Key, d.Action, m, n.Spec.Region)
		}
		if limit := n.Spec.Capacity.MaxShards; limit != nil && w.roles(m) >= int(*limit) {
			w.fail("%v: %s gives %s more than its %d roles", d.Key, d.Action, m, *limit)
		}
	}
}

func (w *world) allowed(k model.ShardKey, n *model.Node) bool {
	home := w.shards[k].region
	return home == "" || n.Spec.Region == home ||
		slices.Contains(w.in.Bridges, model.Bridge{Source: home, Destination: n.Spec.Region})
}

func (w *world) roles(id string) int {
	n := 0
	for _, a := range w.placed {
		if slices.Contains(members(a), id) {
			n++
		}
	}
	return n
}

// checkLeader holds that a log is not given to whoever has not seen it, and that
// a leader that serves is asked.
func (w *world) checkLeader(d Decision, a, old *model.Assignment) {
	if a.Leader == old.Leader || !w.shards[d.Key].durable || d.Action == Discard {
		return
	}
	r := w.report[d.Key]
	switch {
	case !slices.Contains(old.Replicas, a.Leader):
		w.fail("%v: %s makes %s the leader, which has no copy", d.Key, d.Action, a.Leader)
	case r == nil || w.in.NowMillis-r.ReportedAtMillis > reportMillis || !slices.Contains(r.CaughtUp, a.Leader):
		w.fail("%v: %s makes %s the leader, which no fresh report calls caught up", d.Key, d.Action, a.Leader)
	case w.serves(old.Leader) && (d.Action != CutOver || !r.Drained || r.Generation != old.Generation):
		w.fail("%v: %s takes the shard from %s, which serves and has not drained", d.Key, d.Action, old.Leader)
	case w.node(a.Leader).Status.Lifecycle != model.Live:
		w.fail("%v: %s makes %s the leader, which is not live", d.Key, d.Action, a.Leader)
	}
}

// checkCopies holds that a step leaves as many whole copies on brokers that
// serve as there were, or as many as there should be.
func (w *world) checkCopies(d Decision, a, old *model.Assignment) {
	if !d.Action.Step() || d.Action == Discard {
		return
	}
	l := w.logs[d.Key]
	whole := func(a *model.Assignment, but string) (n int) {
		for _, m := range members(a) {
			if m != but && w.serves(m) && l.offsets[m]+w.in.Policy.FenceLag >= l.offsets[old.Leader] {
				n++
			}
		}
		return n
	}
	destination := "" // a copy that is given up does not count
	switch d.Action {
	case Abandon, TimedOut, Cancel, Retake, CutOver:
		if a.Leader != old.Successor {
			destination = receiver(old)
		}
	}
	// A seat that is taken with a small lag is whole in a moment.
	if d.Action == Seat {
		return
	}
	before, after := whole(old, destination), whole(a, destination)
	if after < min(before, w.shards[d.Key].factor) {
		w.fail("%v: %s leaves %d whole copies of %d: %v to %v, %v", d.Key, d.Action, after, before, members(old), members(a), l.offsets)
	}
}
