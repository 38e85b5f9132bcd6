package storetest

import (
	"github.com/felixlog/felix/controlplane/model"
)

func testReports(f *fixture) {
	a, b, c := f.trio()
	k := f.place()
	s, same := f.stream(k, "s", 3), f.cache(k, "s", 1)
	two := streamShard(s, 2)
	f.put(assigning(two, a, b, c))
	f.put(assigning(two, a, b, c))
	f.put(assigning(two, a, b, c))              // generation 2
	f.put(assigning(streamShard(s, 0), b, a))   // another leader
	f.put(assigning(cacheShard(same, 0), a, b)) // a cache of the same name
	f.same(f.reports(k.TenantID), []model.ReplicaReport{})

	full := model.ReplicaReport{
		ShardKey: two, Generation: 2, CaughtUp: []string{b, c}, Offsets: map[string]uint64{b: 941, c: 0, a: 1 << 62},
		ReportedAtMillis: 7, Drained: true, LeaderOffset: ptr(uint64(945)),
	}
	bare := model.ReplicaReport{ShardKey: cacheShard(same, 0), Generation: 0}
	at := func(k model.ShardKey, g uint64) model.ReplicaReport {
		return model.ReplicaReport{ShardKey: k, Generation: g, Drained: true}
	}
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	before := want(f.NowMillis(f.ctx))(f)
	outcomes := want(f.RecordReports(f.ctx, a, []model.ReplicaReport{
		at(streamShard(s, 1), 0), full, at(streamShard(s, 0), 0), bare, at(two, 3), at(two, 1), at(streamShard(s, 9), 0), at(two, 1<<63-1),
	}))(f)
	after := want(f.NowMillis(f.ctx))(f)
	f.same(outcomes, []model.ReportOutcome{
		model.ReportUnassigned, model.ReportAccepted, model.ReportNotLeader, model.ReportAccepted,
		model.ReportFutureGeneration, model.ReportStale, model.ReportUnassigned, model.ReportFutureGeneration,
	})
	got := f.reports(k.TenantID)
	f.same(len(got), 2)
	for i := range got {
		if t := got[i].ReportedAtMillis; t < before || t > after {
			f.Fatalf("reported at %d, want between %d and %d on the store's clock", t, before, after)
		}
		got[i].ReportedAtMillis = 0
	}
	full.ReportedAtMillis = 0
	bare.CaughtUp, bare.Offsets = []string{}, map[string]uint64{}
	f.same(got, []model.ReplicaReport{bare, full})
	// A report is no change.
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange(nil))

	// The latest of a generation replaces the one before; those that are refused
	// do not.
	f.same(want(f.RecordReports(f.ctx, a, []model.ReplicaReport{{ShardKey: two, Generation: 2, CaughtUp: []string{c}}}))(f), []model.ReportOutcome{model.ReportAccepted})
	f.same(want(f.RecordReports(f.ctx, b, []model.ReplicaReport{at(two, 2)}))(f), []model.ReportOutcome{model.ReportNotLeader})
	latest := f.reports(k.TenantID)[1]
	f.same([]any{latest.CaughtUp, latest.Drained, latest.LeaderOffset}, []any{[]string{c}, false, nil})

	// A new generation wants new reports; the old one stays until there is one.
	f.put(assigning(two, b, a, c))
	f.same(want(f.RecordReports(f.ctx, a, []model.ReplicaReport{at(two, 3)}))(f), []model.ReportOutcome{model.ReportNotLeader})
	f.same(want(f.RecordReports(f.ctx, b, []model.ReplicaReport{at(two, 2)}))(f), []model.ReportOutcome{model.ReportStale})
	f.same(f.reports(k.TenantID)[1].Generation, 2)
	f.same(want(f.RecordReports(f.ctx, b, []model.ReplicaReport{at(two, 3)}))(f), []model.ReportOutcome{model.ReportAccepted})
	f.same(f.reports(k.TenantID)[1].Generation, 3)
	f.same(want(f.RecordReports(f.ctx, a, nil))(f), []model.ReportOutcome{})
}
