package memory

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/storetest"
)

// A recorder is a proposer that remembers what it applied, in order.
type recorder struct {
	direct
	mu       sync.Mutex
	commands []Command
}

func (r *recorder) Propose(_ context.Context, c Command) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.At = r.millis()
	r.commands = append(r.commands, c)
	return r.machine.Apply(c), nil
}

func newRecorder(l store.Limits, clock func() time.Time) *recorder {
	if clock == nil {
		clock = time.Now
	}
	r := &recorder{direct: direct{clock: NewClock(clock)}}
	r.machine = NewMachine(NewState(l), r, Hooks{
		Name: "memory",
		Now:  func(context.Context) (uint64, error) { return r.millis(), nil },
	})
	return r
}

// TestContractReplays runs the contract and applies its commands again: to an
// empty state, and to one that is restored from a snapshot on the way.
func TestContractReplays(t *testing.T) {
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		r := newRecorder(o.Limits, o.Clock)
		t.Cleanup(func() { replay(t, r, o.Limits) })
		return r.machine
	})
}

func replay(t *testing.T, r *recorder, l store.Limits) {
	want, err := r.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	plain, restored := NewState(l), NewState(l)
	for i, c := range r.commands {
		a, b := plain.Apply(c), restored.Apply(c)
		equal(t, c.Op, b, a)
		if i%(len(r.commands)/5+1) == 0 {
			fresh := NewState(l)
			if err := fresh.Restore(snapshotOf(t, restored)); err != nil {
				t.Fatal(err)
			}
			restored = fresh
			checkInvariants(t, restored)
		}
	}
	checkInvariants(t, plain)
	for name, s := range map[string]*State{"replayed": plain, "restored": restored} {
		if got := snapshotOf(t, s); !bytes.Equal(got, want) {
			t.Errorf("the %s state differs:\n got %s\nwant %s", name, got, want)
		}
	}
}

// furnish does most of what a store can, and answers with its commands.
func furnish(t testing.TB) (*State, []Command) {
	t.Helper()
	r := newRecorder(store.Limits{}, func() time.Time { return time.UnixMilli(1_790_000_000_000) })
	m, ctx := r.machine, t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	k := model.NamespaceKey{TenantID: "t", Namespace: "ns"}
	ok(m.CreateTenant(ctx, model.Tenant{TenantID: "t", DisplayName: "T"}))
	ok(m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "ns"}))
	s := model.Stream{TenantID: "t", Namespace: "ns", Stream: "s", Shards: 2, UID: "u1"}
	gone := model.Stream{TenantID: "t", Namespace: "ns", Stream: "gone", Shards: 1, UID: "u2"}
	c := model.Cache{TenantID: "t", Namespace: "ns", Cache: "c", Shards: 1, UID: "u3"}
	ok(m.CreateResources(ctx, k, []model.Stream{s, gone}, []model.Cache{c}))
	for _, id := range []string{"n1", "n2"} {
		_, err := m.RegisterNode(ctx, id, model.NodeSpec{AdvertiseAddr: "10.0.0.1:" + id[1:], Features: []string{"f"}})
		ok(err)
	}
	_, err := m.EnableFeature(ctx, "f")
	ok(err)
	_, err = m.Heartbeat(ctx, "n1", 0)
	ok(err)
	zero, durable := uint64(0), true
	shard := func(name string, kind model.ShardKind) model.ShardKey {
		return model.ShardKey{TenantID: "t", Namespace: "ns", Stream: name, Kind: kind}
	}
	for token, p := range []putBody{
		{Assignment: model.Assignment{ShardKey: shard("s", model.StreamShard), Leader: "n1", Replicas: []string{"n2"}, State: model.Assigning}},
		{Assignment: model.Assignment{ShardKey: shard("s", model.StreamShard), Leader: "n2", Replicas: []string{"n1"}, State: model.ShardDraining, Successor: "n1"}, Expected: &zero},
		{Assignment: model.Assignment{ShardKey: shard("gone", model.StreamShard), Leader: "n1", State: model.Assigning}},
		{Assignment: model.Assignment{ShardKey: shard("c", model.CacheShard), Leader: "n1", State: model.Active}},
	} {
		_, err := m.PutAssignmentIf(ctx, p.Assignment, p.Expected, uint64(token))
		ok(err)
	}
	_, err = m.RecordReports(ctx, "n1", []model.ReplicaReport{{ShardKey: shard("c", model.CacheShard)}})
	ok(err)
	_, err = m.PatchStream(ctx, s.Key(), model.StreamPatch{Durable: &durable})
	ok(err)
	ok(m.DeleteStream(ctx, gone.Key()))
	ok(m.PutBridge(ctx, model.Bridge{Source: "a", Destination: "b"}))
	ok(m.SetMovesPaused(ctx, true))
	_, err = m.AcquireLease(ctx, "me", time.Second)
	ok(err)
	key := model.SigningKey{KID: "k1", Seed: make([]byte, 32), Public: make([]byte, 32)}
	ok(m.CreateTenantWithKey(ctx, model.Tenant{TenantID: "u"}, key))
	_, err = m.BootstrapTenant(ctx, model.Tenant{TenantID: "t"}, model.AuthSeed{
		Key: key, Issuers: []model.IdpIssuer{{Issuer: "i"}},
		Policies: []model.Policy{{Subject: "s", Object: "o", Action: "a"}}, Groupings: []model.Grouping{{User: "u", Role: "r"}},
	})
	ok(err)
	_, err = m.StageSigningKey(ctx, "t", model.SigningKey{KID: "k2", Seed: []byte("seed"), Public: []byte("public")})
	ok(err)
	_, err = m.ActivateSigningKey(ctx, "t", "k2")
	ok(err)
	for _, id := range []string{"r1", "r2"} {
		ok(m.InsertRefreshToken(ctx, model.RefreshToken{TenantID: "t", TokenID: id, FamilyID: "f", PrincipalID: "p", Narrowing: &model.Narrowing{}}))
	}
	_, err = m.TakeRefreshToken(ctx, "t", "r1")
	ok(err)
	d, err := m.Export(ctx)
	ok(err)
	ok(m.Import(ctx, d, true))
	ok(m.InsertRefreshToken(ctx, model.RefreshToken{TenantID: "t", TokenID: "r3", FamilyID: "f", PrincipalID: "p"}))
	ok(m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "ns2"}))
	return m.state, r.commands
}
