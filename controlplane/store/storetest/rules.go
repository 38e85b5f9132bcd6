package storetest

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testRules(f *fixture) {
	a, b, c := f.trio()
	k := f.place()
	s, cache := f.stream(k, "s", 2), f.cache(k, "c", 1)
	gone := f.node("gone").NodeID
	first(f.SetLifecycle(f.ctx, gone, model.Left))(f)
	f.ok(f.DeleteNode(f.ctx, gone))
	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	token := f.token()

	key := streamShard(s, 1)
	change := func(do func(a *model.Assignment)) model.Assignment {
		x := assigning(key, a, b, c)
		do(&x)
		return x
	}
	for name, x := range map[string]model.Assignment{
		"shard of stream":     change(func(x *model.Assignment) { x.Shard = 2 }),
		"shard of cache":      assigning(cacheShard(cache, 1), a),
		"huge shard":          change(func(x *model.Assignment) { x.Shard = 1<<31 - 1 }),
		"unknown leader":      change(func(x *model.Assignment) { x.Leader = gone }),
		"no leader":           change(func(x *model.Assignment) { x.Leader = "" }),
		"unknown replica":     change(func(x *model.Assignment) { x.Replicas = []string{b, gone} }),
		"leader as replica":   change(func(x *model.Assignment) { x.Replicas = []string{b, a} }),
		"replica twice":       change(func(x *model.Assignment) { x.Replicas = []string{b, c, b} }),
		"successor elsewhere": change(func(x *model.Assignment) { x.Replicas = []string{b}; x.Successor = c }),
		"leader as successor": change(func(x *model.Assignment) { x.Successor = a }),
		"joining elsewhere":   change(func(x *model.Assignment) { x.Replicas = []string{b}; x.Joining = c }),
		"odd state":           change(func(x *model.Assignment) { x.State = "odd" }),
	} {
		_, err := f.PutAssignmentIf(f.ctx, x, nil, token)
		if err == nil {
			f.Fatalf("%s: was written", name)
		}
		f.conflict(err, store.BadAssignment)
	}
	_, err := f.PutAssignmentIf(f.ctx, assigning(streamShard(newStream(k, "none", 1), 0), a), nil, token)
	f.missing(err, "stream")
	// A cache is no stream.
	_, err = f.PutAssignmentIf(f.ctx, assigning(cacheShard(newCache(k, "s", 1), 0), a), nil, token)
	f.missing(err, "cache")
	_, err = f.PutAssignmentIf(f.ctx, assigning(streamShard(newStream(k, "c", 1), 0), a), nil, token)
	f.missing(err, "stream")
	f.same(f.token(), token)
	f.same(changesSince(f, f.AssignmentChanges, since), []model.AssignmentChange(nil))

	// Nodes need to be known, not to serve.
	first(f.SetLifecycle(f.ctx, b, model.Down))(f)
	f.put(assigning(key, b, c))
	// The rules hold for later writes too.
	_, err = f.PutAssignmentIf(f.ctx, change(func(x *model.Assignment) { x.Leader = gone }), ptr(uint64(0)), f.token())
	f.conflict(err, store.BadAssignment)
}

func testStates(f *fixture) {
	a, b, _ := f.trio()
	s := f.stream(f.place(), "s", 9)
	states := []model.ShardState{model.Assigning, model.Active, model.ShardDraining}
	allowed := map[[2]model.ShardState]bool{
		{model.Assigning, model.Assigning}:         true,
		{model.Assigning, model.Active}:            true,
		{model.Assigning, model.ShardDraining}:     true,
		{model.Active, model.Active}:               true,
		{model.Active, model.ShardDraining}:        true,
		{model.ShardDraining, model.ShardDraining}: true,
		{model.ShardDraining, model.Assigning}:     true,
	}
	for i, from := range states {
		for j, to := range states {
			x := assigning(streamShard(s, uint32(3*i+j)), a, b)
			f.put(x)
			x.State = from
			old := f.put(x)
			x.State = to
			r, err := f.PutAssignmentIf(f.ctx, x, &old.Generation, f.token())
			if allowed[[2]model.ShardState{from, to}] {
				f.ok(err)
				f.same([]any{r.Outcome, r.Written.State, r.Written.Generation}, []any{store.Written, to, 2})
				continue
			}
			f.conflict(err, store.BadAssignment)
			f.same(want(f.Assignment(f.ctx, x.ShardKey))(f), old)
		}
	}
}
