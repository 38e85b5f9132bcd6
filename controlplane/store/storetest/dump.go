package storetest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// everything fills a store with some of all that is exported.
func (f *fixture) everything() {
	f.Helper()
	t := f.tenant("a")
	f.tenant("b")
	k := f.namespace(t, "ns")
	f.namespace(t, "empty")
	node, other := f.node("n").NodeID, f.spec()
	other.ClientAddr, other.KafkaAddr, other.Zone, other.Features = "1.2.3.4:5", "k:1", "z", []string{"feature"}
	other.Labels, other.Capacity.MaxShards = map[string]string{"a": "b"}, ptr(uint32(9))
	want(f.RegisterNode(f.ctx, f.prefix+"-other", other))(f)
	first(f.SetLifecycle(f.ctx, node, model.Down))(f)
	f.same(want(f.EnableFeature(f.ctx, "feature"))(f), []string{})

	s := newStream(k, "s", 3)
	s.Retention.MaxAgeSeconds, s.Region, s.Routing = ptr(uint64(60)), "eu", model.JumpHash
	f.ok(f.CreateStream(f.ctx, s))
	c := f.cache(k, "c", 1)
	gone, goneCache := f.stream(k, "gone", 1), f.cache(k, "gone-too", 1)
	for _, x := range []model.Assignment{
		assigning(streamShard(s, 0), node, f.prefix+"-other"), assigning(streamShard(s, 0), f.prefix+"-other", node),
		{
			ShardKey: streamShard(s, 2), Leader: node, Replicas: []string{f.prefix + "-other"}, State: model.ShardDraining,
			Successor: f.prefix + "-other", MoveStartedAtMillis: ptr(uint64(5)), MoveReason: model.MoveDrain, Routing: model.JumpHash,
		},
		assigning(cacheShard(c, 0), node), assigning(streamShard(gone, 0), node),
	} {
		f.put(x)
	}
	f.report(cacheShard(c, 0), node)
	f.ok(f.DeleteStream(f.ctx, gone.Key()))
	f.ok(f.DeleteCache(f.ctx, goneCache.Key()))
	f.ok(f.PutBridge(f.ctx, model.Bridge{Source: "eu", Destination: "us"}))
	f.ok(f.SetMovesPaused(f.ctx, true))

	want(f.BootstrapTenant(f.ctx, model.Tenant{TenantID: t}, seed("k1")))(f)
	for _, kid := range []string{"k2", "k3", "k4", "k5"} {
		want(f.StageSigningKey(f.ctx, t, newKey(kid)))(f)
	}
	want(f.ActivateSigningKey(f.ctx, t, "k3"))(f)
	want(f.ActivateSigningKey(f.ctx, t, "k2"))(f)
	f.ok(f.InsertRefreshToken(f.ctx, newToken(t, "r", "fam", "p")))
}

// export reads a dump; its tombstones are in no order.
func (f *fixture) export() *model.Dump {
	f.Helper()
	d := want(f.Export(f.ctx))(f)
	slices.SortFunc(d.Tombstones, func(a, b model.Tombstone) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.TenantID, b.TenantID), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID), cmp.Compare(a.DeletedAtMillis, b.DeletedAtMillis))
	})
	return d
}

func testExportImport(t *testing.T, open func(*testing.T, Options) store.Store) {
	from, to := solitary(t, open, Options{}), solitary(t, open, Options{})
	from.everything()
	d := from.export()
	from.same([]int{
		d.Version, len(d.Tenants), len(d.Namespaces), len(d.Streams), len(d.Caches), len(d.Nodes), len(d.Assignments),
		len(d.Bridges), len(d.Tombstones), len(d.Auth[0].Keys), len(d.Features),
	}, []int{model.DumpVersion, 2, 2, 1, 1, 2, 3, 1, 2, 5, 1})
	from.same(d.Streams, want(from.StreamsSnapshot(from.ctx))(from).Items)
	from.same(d.Assignments, want(from.Assignments(from.ctx))(from))
	from.same(d.Nodes, want(from.Nodes(from.ctx))(from))
	from.same(d.Auth[0].Keys, want(from.SigningKeys(from.ctx, d.Auth[0].TenantID))(from))
	from.same(d.NextSeq, from.heads6())
	from.same(d.Token, from.token())

	// What planners and operators set in an empty group does not count.
	want(to.AcquireLease(to.ctx, "planner", 0))(to)
	to.ok(to.SetMovesPaused(to.ctx, false))
	to.ok(to.PutBridge(to.ctx, model.Bridge{Source: "x", Destination: "y"}))
	token := to.token()
	changed := to.AssignmentsChanged()
	to.ok(to.Import(to.ctx, d, false))
	select {
	case <-changed:
	case <-to.ctx.Done():
		t.Fatal("nobody was woken by an import")
	}

	// The same, but for the token, which fences who read before.
	if got := to.token(); got <= token || got < d.Token {
		t.Fatalf("token is %d after an import of %d over %d", got, d.Token, token)
	}
	got := to.export()
	got.Token = d.Token
	to.same(got, d)
	to.same(to.heads6(), d.NextSeq)
	to.same(want(to.Reports(to.ctx))(to), []model.ReplicaReport{})
	_, err := to.TakeRefreshToken(to.ctx, d.Auth[0].TenantID, "r")
	to.missing(err, "")

	// A reader at the head notices nothing, one behind it takes a snapshot.
	for _, x := range feeds {
		head := want(x.head(to.ctx, to.Store))(to)
		to.same(want(x.read(to.ctx, to.Store, head))(to).verdict, model.Nothing)
		to.same(want(x.read(to.ctx, to.Store, head-1))(to).verdict, model.Resnapshot)
	}
	// And the store goes on where the other ended.
	a := d.Assignments[0]
	r := want(to.PutAssignmentIf(to.ctx, a, &a.Generation, to.token()))(to)
	to.same([]any{r.Outcome, r.Written.Generation}, []any{store.Written, a.Generation + 1})
	c := changesSince(to, to.AssignmentChanges, d.NextSeq.Assignments)
	to.same([]any{len(c), c[0].Seq}, []any{1, d.NextSeq.Assignments})
	taken := to.spec()
	taken.AdvertiseAddr, taken.Features = d.Nodes[0].Spec.AdvertiseAddr, []string{"feature"}
	_, err = to.RegisterNode(to.ctx, "thief", taken)
	to.conflict(err, store.AddressTaken)
	to.conflict(failed(to.BootstrapTenant(to.ctx, d.Tenants[0], seed("again"))), store.Bootstrapped)
}

// heads6 are the heads of all feeds.
func (f *fixture) heads6() model.FeedHeads {
	f.Helper()
	h := f.heads()
	return model.FeedHeads{
		Tenants: h.tenants, Namespaces: h.namespaces, Streams: h.streams, Caches: h.caches, Assignments: h.assignments,
		Nodes: want(f.NodesSnapshot(f.ctx))(f).NextSeq,
	}
}

// testOverwrite replaces what a store holds. Every reader, of the old log or of
// the imported one, must notice.
func testOverwrite(t *testing.T, open func(*testing.T, Options) store.Store) {
	from, to := solitary(t, open, Options{}), solitary(t, open, Options{})
	from.everything()
	d := from.export()
	to.prefix = "t01"
	to.everything()
	to.tenant("more")
	old, token := to.heads6(), to.token()
	to.conflict(to.Import(to.ctx, d, false), store.NotEmpty)
	to.same(to.heads6(), old)
	to.ok(to.Import(to.ctx, d, true))
	now := to.heads6()
	for _, heads := range []model.FeedHeads{old, d.NextSeq} {
		for i, head := range []uint64{heads.Tenants, heads.Namespaces, heads.Streams, heads.Caches, heads.Nodes, heads.Assignments} {
			p := want(feeds[i].read(to.ctx, to.Store, head))(to)
			if p.verdict != model.Resnapshot {
				t.Errorf("a reader of %s at %d does not notice: %+v", feeds[i].name, head, p)
			}
		}
	}
	if got := to.token(); got <= token || got < d.Token {
		t.Errorf("token is %d after an import of %d over %d", got, d.Token, token)
	}
	got := to.export()
	to.same(got.NextSeq, now)
	got.Token, got.NextSeq = d.Token, d.NextSeq
	to.same(got, d)
	_, err := to.Tenant(to.ctx, "t01-a")
	to.missing(err, "tenant")

	// Back to where it came from, whatever that holds now.
	from.ok(from.Import(from.ctx, to.export(), true))
	got = from.export()
	got.Token, got.NextSeq = d.Token, d.NextSeq
	from.same(got, d)
}

func testImportRefusals(t *testing.T, open func(*testing.T, Options) store.Store) {
	source := solitary(t, open, Options{})
	source.everything()
	f := solitary(t, open, Options{})
	for name, spoil := range map[string]func(d *model.Dump){
		"version":           func(d *model.Dump) { d.Version++ },
		"tenant twice":      func(d *model.Dump) { d.Tenants = append(d.Tenants, d.Tenants[0]) },
		"namespace adrift":  func(d *model.Dump) { d.Namespaces[0].TenantID = "none" },
		"stream adrift":     func(d *model.Dump) { d.Streams[0].Namespace = "none" },
		"cache adrift":      func(d *model.Dump) { d.Caches[0].Namespace = "none" },
		"address twice":     func(d *model.Dump) { d.Nodes[1].Spec.AdvertiseAddr = d.Nodes[0].Spec.AdvertiseAddr },
		"assignment adrift": func(d *model.Dump) { d.Assignments[0].Stream = "none" },
		"unknown leader":    func(d *model.Dump) { d.Assignments[0].Leader = "none" },
		"unknown replica":   func(d *model.Dump) { d.Assignments[0].Replicas = []string{"none"} },
		"no such shard":     func(d *model.Dump) { d.Assignments[0].Shard = 1000 },
		"unknown kind":      func(d *model.Dump) { d.Assignments[0].Kind = "queue" },
	} {
		d := source.export()
		spoil(d)
		err := f.Import(f.ctx, d, false)
		if err == nil {
			t.Errorf("%s: dump was imported", name)
		}
		var full *store.ConflictError
		var gone *store.NotFoundError
		if errors.As(err, &full) || errors.As(err, &gone) {
			t.Fatalf("%s: the store is blamed for what is wrong with the dump: %v", name, err)
		}
		if name != "version" && err != nil && !strings.Contains(err.Error(), "dump contradicts itself") {
			t.Errorf("%s: %v", name, err)
		}
		f.same(f.heads6(), model.FeedHeads{})
		f.same(want(f.Tenants(f.ctx))(f), []model.Tenant{})
	}
	// A store that held something once is not empty.
	id := f.tenant("once")
	f.ok(f.DeleteTenant(f.ctx, id))
	f.conflict(f.Import(f.ctx, source.export(), false), store.NotEmpty)
	f.same(want(f.Tenants(f.ctx))(f), []model.Tenant{})
	f.ok(f.Import(f.ctx, source.export(), true))
	f.same(len(want(f.Tenants(f.ctx))(f)), 2)
}

func testClose(t *testing.T, open func(*testing.T, Options) store.Store) {
	f := solitary(t, open, Options{})
	k := f.place()
	f.ok(f.Close())
	f.ok(f.Close())
	for name, err := range map[string]error{
		"Tenants":         failed(f.Tenants(f.ctx)),
		"CreateTenant":    f.CreateTenant(f.ctx, model.Tenant{TenantID: "t"}),
		"Streams":         failed(f.Streams(f.ctx, k)),
		"StreamsSnapshot": failed(f.StreamsSnapshot(f.ctx)),
		"StreamChanges":   failed(f.StreamChanges(f.ctx, 0)),
		"Heartbeat":       failed(f.Heartbeat(f.ctx, "n", 0)),
		"PutAssignmentIf": failed(f.PutAssignmentIf(f.ctx, model.Assignment{}, nil, 0)),
		"Export":          failed(f.Export(f.ctx)),
		"Health":          f.Health(f.ctx),
		"NowMillis":       failed(f.NowMillis(f.ctx)),
		"CatchUp":         f.CatchUp(f.ctx),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s of a closed store: %v, want %v", name, err, store.ErrClosed)
		}
	}
}
