package storetest

import (
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testPutIf(f *fixture) {
	a, b, c := f.trio()
	s := f.stream(f.place(), "s", 4)
	k := streamShard(s, 3)
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	token := f.token()

	given := assigning(k, a, b, c)
	given.Generation = 99 // which is ignored
	given.Routing = model.JumpHash
	zero := given
	zero.Generation = 0
	f.same(want(f.PutAssignmentIf(f.ctx, given, nil, token))(f), store.PutResult{Outcome: store.Written, Written: zero, Token: token + 1})
	f.same(f.token(), token+1)
	f.same(want(f.Assignment(f.ctx, k))(f), zero)

	moving := model.Assignment{
		ShardKey: k, Leader: a, Replicas: []string{c, b}, State: model.ShardDraining, Successor: b, Joining: c,
		MoveStartedAtMillis: ptr(uint64(1_790_000_000_000)), MoveReason: model.MoveOperator,
	}
	one := moving
	one.Generation = 1
	f.same(want(f.PutAssignmentIf(f.ctx, moving, ptr(uint64(0)), token+1))(f), store.PutResult{Outcome: store.Written, Written: one, Token: token + 2})
	f.same(want(f.Assignment(f.ctx, k))(f), one)
	token += 2

	// Stale: nothing is written, and the token stays.
	other := streamShard(s, 0)
	for _, x := range []struct {
		a        model.Assignment
		expected *uint64
		current  *uint64
	}{
		{assigning(k, b), nil, ptr(uint64(1))},
		{assigning(k, b), ptr(uint64(0)), ptr(uint64(1))},
		{assigning(k, b), ptr(uint64(2)), ptr(uint64(1))},
		{assigning(other, b), ptr(uint64(0)), nil},
	} {
		r := want(f.PutAssignmentIf(f.ctx, x.a, x.expected, token))(f)
		f.same([]any{r.Outcome, r.Token, r.Current}, []any{store.Stale, token, x.current})
	}
	// Fenced: whatever the generation.
	for _, wrong := range []uint64{token - 1, token + 1, 0} {
		for _, expected := range []*uint64{nil, ptr(uint64(1)), ptr(uint64(7))} {
			r := want(f.PutAssignmentIf(f.ctx, assigning(k, b), expected, wrong))(f)
			f.same([]any{r.Outcome, r.Token}, []any{store.Fenced, token})
		}
	}
	f.same(f.token(), token)
	f.same(want(f.Assignment(f.ctx, k))(f), one)
	_, err := f.Assignment(f.ctx, other)
	f.missing(err, "")
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange{
		{Seq: since, Op: model.Assigned, Key: k, Assignment: &zero},
		{Seq: since + 1, Op: model.Updated, Key: k, Assignment: &one},
	})
}

// testPutIfRace has two planners, and more, who both saw the last slot free:
// one writes, the others are fenced, on whatever shard.
func testPutIfRace(f *fixture) {
	const planners = 8
	a, b, _ := f.trio()
	s := f.stream(f.place(), "s", planners)
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	for round := range 4 {
		token := f.token()
		var mu sync.Mutex
		outcomes := map[store.PutOutcome]int{}
		var errs []error
		together(planners, func(i int) {
			k := streamShard(s, uint32(i))
			expected := (*uint64)(nil)
			if round%2 == 1 {
				k.Shard = 0 // all on one shard
			}
			if old, err := f.Assignment(f.ctx, k); err == nil {
				expected = &old.Generation
			}
			r, err := f.PutAssignmentIf(f.ctx, assigning(k, a, b), expected, token)
			mu.Lock()
			defer mu.Unlock()
			outcomes[r.Outcome]++
			if err != nil {
				errs = append(errs, err)
			}
		})
		for _, err := range errs {
			f.ok(err)
		}
		f.same(outcomes, map[store.PutOutcome]int{store.Written: 1, store.Fenced: planners - 1})
		f.same(f.token(), token+1)
	}
	f.same(len(changesSince(f, f.AssignmentChanges, since)), 4)
}

func testPutsIf(f *fixture) {
	a, b, c := f.trio()
	s := f.stream(f.place(), "s", store.MaxPuts+1)
	k := func(i int) model.ShardKey { return streamShard(s, uint32(i)) }
	f.put(assigning(k(1), a))
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	token := f.token()

	// In order: written, stale, written over, stale.
	r := want(f.PutAssignmentsIf(f.ctx, []store.Put{
		{Assignment: assigning(k(2), a, b)},
		{Assignment: assigning(k(1), b)},
		{Assignment: assigning(k(1), c), Expected: ptr(uint64(0))},
		{Assignment: assigning(k(0), c), Expected: ptr(uint64(4))},
	}, token))(f)
	second, first := assigning(k(2), a, b), assigning(k(1), c)
	first.Generation = 1
	f.same(len(r), 4)
	f.same(r[0], store.PutResult{Outcome: store.Written, Written: second, Token: token + 2})
	f.same([]any{r[1].Outcome, r[1].Token, r[1].Current}, []any{store.Stale, token + 2, 0})
	f.same(r[2], store.PutResult{Outcome: store.Written, Written: first, Token: token + 2})
	f.same([]any{r[3].Outcome, r[3].Token, r[3].Current}, []any{store.Stale, token + 2, nil})
	token += 2
	f.same(f.token(), token)
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange{
		{Seq: since, Op: model.Assigned, Key: k(2), Assignment: &second},
		{Seq: since + 1, Op: model.Updated, Key: k(1), Assignment: &first},
	})
	since += 2

	// The same shard twice, one after the other.
	third, fourth := assigning(k(3), a), assigning(k(3), b)
	fourth.Generation = 1
	r = want(f.PutAssignmentsIf(f.ctx, []store.Put{
		{Assignment: third}, {Assignment: fourth, Expected: ptr(uint64(0))}, {Assignment: third, Expected: ptr(uint64(0))},
	}, token))(f)
	f.same(r[:2], []store.PutResult{
		{Outcome: store.Written, Written: third, Token: token + 2}, {Outcome: store.Written, Written: fourth, Token: token + 2},
	})
	f.same([]any{r[2].Outcome, r[2].Current}, []any{store.Stale, 1})
	f.same(want(f.Assignment(f.ctx, k(3)))(f), fourth)
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange{
		{Seq: since, Op: model.Assigned, Key: k(3), Assignment: &third},
		{Seq: since + 1, Op: model.Updated, Key: k(3), Assignment: &fourth},
	})
	since, token = since+2, token+2

	// One error, and nothing is written; so with another token.
	_, err := f.PutAssignmentsIf(f.ctx, []store.Put{{Assignment: assigning(k(5), a)}, {Assignment: assigning(k(6), "none")}}, token)
	f.conflict(err, store.BadAssignment)
	none := k(0)
	none.Stream = "none"
	_, err = f.PutAssignmentsIf(f.ctx, []store.Put{{Assignment: assigning(k(5), a)}, {Assignment: assigning(none, a)}}, token)
	f.missing(err, "stream")
	for _, x := range want(f.PutAssignmentsIf(f.ctx, []store.Put{{Assignment: assigning(k(5), a)}, {Assignment: assigning(k(6), a)}}, token-1))(f) {
		f.same([]any{x.Outcome, x.Token}, []any{store.Fenced, token})
	}
	var puts []store.Put
	for i := range store.MaxPuts + 1 {
		puts = append(puts, store.Put{Assignment: assigning(k(i), b, c)})
	}
	if _, err := f.PutAssignmentsIf(f.ctx, puts, token); err == nil {
		f.Fatal("more puts than the most were taken")
	}
	f.same(len(want(f.PutAssignmentsIf(f.ctx, nil, token))(f)), 0)
	f.same(f.token(), token)
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange(nil))

	// As many as there may be; 1, 2 and 3 are there.
	written := 0
	for _, x := range want(f.PutAssignmentsIf(f.ctx, puts[:store.MaxPuts], token))(f) {
		if x.Outcome == store.Written {
			written++
		}
		f.same(x.Token, token+store.MaxPuts-3)
	}
	f.same(written, store.MaxPuts-3)
	f.same(f.token(), token+store.MaxPuts-3)
	f.same(len(changesSince(f, f.AssignmentChanges, since)), store.MaxPuts-3)
}
