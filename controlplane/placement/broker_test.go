package placement

import (
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// broker lets the leader of a shard work for a while: open what it took over,
// write, copy and report. Where hurried, everybody gets level.
func (w *world) broker(k model.ShardKey, hurried bool) {
	a, l, tr := w.placed[k], w.logs[k], w.shards[k]
	if a == nil || !w.serves(a.Leader) || !w.open(k) {
		return
	}
	fenced := a.State == model.ShardDraining
	if !fenced && !hurried {
		l.offsets[a.Leader] += uint64(w.draw(4))
	}
	tail := l.offsets[a.Leader]
	r := &model.ReplicaReport{
		ShardKey: k, Generation: a.Generation, LeaderOffset: &tail, Offsets: map[string]uint64{},
		CaughtUp: []string{}, ReportedAtMillis: w.in.NowMillis,
	}
	level := 0
	for _, f := range a.Replicas {
		if !w.serves(f) {
			continue
		}
		at := min(l.offsets[f], tail)
		if hurried {
			at = tail
		} else if w.draw(2) == 0 {
			at += uint64(w.draw(int(tail-at) + 1))
		}
		l.offsets[f], r.Offsets[f] = at, at
		if at == tail {
			r.CaughtUp = append(r.CaughtUp, f)
			level++
		}
	}
	if tr.quorum {
		l.acked = max(l.acked, w.mark(a, l))
		if !moving(a) {
			// Caught up is then who holds all that was acknowledged (replication 8).
			r.CaughtUp = slices.DeleteFunc(slices.Sorted(maps.Keys(r.Offsets)), func(f string) bool {
				return r.Offsets[f] < l.acked
			})
		}
	}
	if fenced {
		if w.serves(a.Successor) {
			r.Drained = l.offsets[a.Successor] == tail
		} else {
			r.Drained = level == len(r.Offsets)
		}
	}
	if hurried || w.draw(3) > 0 { // else it is lost on the way
		w.report[k] = r
	}
}

// open is what a leader does at a new generation: it takes what the majority of
// the set that knows least knows, and the others drop what it lacks. Without a
// majority it does not open.
func (w *world) open(k model.ShardKey) bool {
	a, l, tr := w.placed[k], w.logs[k], w.shards[k]
	if l.opened == a.Generation+1 {
		return true
	}
	if tr.quorum {
		var others []string
		for _, f := range a.Replicas {
			if w.serves(f) {
				others = append(others, f)
			}
		}
		needed := (len(a.Replicas) + 1) / 2 // beside the leader
		if len(others) < needed {
			return false
		}
		slices.SortFunc(others, func(x, y string) int { return int(l.offsets[x]) - int(l.offsets[y]) })
		for _, f := range others[:needed] {
			l.offsets[a.Leader] = max(l.offsets[a.Leader], l.offsets[f])
		}
		if l.offsets[a.Leader] < l.acked {
			w.fail("%v: %s opens at %d at generation %d, but %d was acknowledged (set %v, %v)", k, a.Leader,
				l.offsets[a.Leader], a.Generation, l.acked, members(a), l.offsets)
		}
	}
	for _, f := range a.Replicas {
		l.offsets[f] = min(l.offsets[f], l.offsets[a.Leader])
	}
	l.opened = a.Generation + 1
	return true
}

// mark is what a majority of those who vote holds. A destination that was not in
// the set before does not vote.
func (w *world) mark(a *model.Assignment, l *shardLog) uint64 {
	var held []uint64
	for _, m := range members(a) {
		if m == a.Successor && !slices.Contains(l.before, m) {
			continue
		}
		held = append(held, l.offsets[m])
	}
	slices.Sort(held)
	return held[len(held)-1-len(held)/2]
}
