package storetest

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testAssignmentLists(f *fixture) {
	a, b, c := f.trio()
	k := f.place()
	s, same, after := f.stream(k, "x", 12), f.cache(k, "x", 12), f.stream(k, "x.y", 1)
	var all []model.Assignment
	for i := range uint32(12) {
		all = append(all, f.put(assigning(streamShard(s, i), a, b)), f.put(assigning(cacheShard(same, i), b)))
	}
	all = append(all, f.put(assigning(streamShard(after, 0), c)))
	sorted := func(x, y model.Assignment) int { return x.ShardKey.Compare(y.ShardKey) }
	slices.SortFunc(all, sorted)
	mine := func(list []model.Assignment) []model.Assignment {
		f.Helper()
		if !slices.IsSortedFunc(list, sorted) {
			f.Fatalf("assignments are not sorted: %s", asJSON(list))
		}
		return slices.DeleteFunc(list, func(x model.Assignment) bool { return x.TenantID != k.TenantID })
	}
	f.same(mine(want(f.Assignments(f.ctx))(f)), all)
	f.same(mine(want(f.AssignmentsSnapshot(f.ctx))(f).Items), all)
	of := func(node string) []model.Assignment {
		return slices.DeleteFunc(slices.Clone(all), func(x model.Assignment) bool {
			return x.Leader != node && !slices.Contains(x.Replicas, node)
		})
	}
	for _, node := range []string{a, b, c} {
		f.same(mine(want(f.AssignmentsOf(f.ctx, node))(f)), of(node))
	}
	f.same(want(f.AssignmentsOf(f.ctx, f.prefix+"-none"))(f), []model.Assignment{})

	// A node that is no longer named is no longer listed.
	f.put(assigning(streamShard(s, 5), c, a))
	f.same(len(want(f.AssignmentsOf(f.ctx, a))(f)), 12)
	f.same(len(want(f.AssignmentsOf(f.ctx, b))(f)), 23)
	f.same(len(want(f.AssignmentsOf(f.ctx, c))(f)), 2)
	f.put(assigning(streamShard(s, 5), c))
	f.same(len(want(f.AssignmentsOf(f.ctx, a))(f)), 11)
}

func testDeleteAssignment(f *fixture) {
	a, b, _ := f.trio()
	s := f.stream(f.place(), "s", 2)
	k := streamShard(s, 0)
	f.put(assigning(k, a, b))
	f.put(assigning(k, a, b))
	f.put(assigning(streamShard(s, 1), a))
	f.report(k, a)
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	f.ok(f.DeleteAssignment(f.ctx, k))
	err := f.DeleteAssignment(f.ctx, k)
	f.missing(err, "")
	_, err = f.Assignment(f.ctx, k)
	f.missing(err, "")
	f.same(f.reports(s.TenantID), []model.ReplicaReport{})
	f.same(len(want(f.AssignmentsOf(f.ctx, a))(f)), 1)
	f.same(len(want(f.AssignmentsOf(f.ctx, b))(f)), 0)
	again := f.put(assigning(k, b))
	f.same(again.Generation, 0)
	f.same(f.reports(s.TenantID), []model.ReplicaReport{})
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange{
		{Seq: since, Op: model.Unassigned, Key: k},
		{Seq: since + 1, Op: model.Assigned, Key: k, Assignment: &again},
	})
}

// testAssignmentsChanged waits as the long poll does: the channel is taken
// before the change.
func testAssignmentsChanged(f *fixture) {
	a, b, _ := f.trio()
	k := f.place()
	s := f.stream(k, "s", 2)
	woken := func(what string, changed <-chan struct{}) {
		f.Helper()
		select {
		case <-changed:
		case <-f.ctx.Done():
			f.Fatalf("nobody was woken by %s", what)
		}
	}
	changed := f.AssignmentsChanged()
	f.put(assigning(streamShard(s, 0), a))
	woken("an assignment", changed)
	changed = f.AssignmentsChanged()
	f.put(assigning(streamShard(s, 0), b))
	woken("another", changed)
	changed = f.AssignmentsChanged()
	want(f.PutAssignmentsIf(f.ctx, []store.Put{{Assignment: assigning(streamShard(s, 1), a)}}, f.token()))(f)
	woken("several", changed)
	changed = f.AssignmentsChanged()
	f.ok(f.DeleteAssignment(f.ctx, streamShard(s, 0)))
	woken("a deletion", changed)
	changed = f.AssignmentsChanged()
	f.ok(f.DeleteStream(f.ctx, s.Key()))
	woken("a cascade", changed)
}
