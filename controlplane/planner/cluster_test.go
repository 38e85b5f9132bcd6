package planner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

const patience = 60 * time.Second

// A cluster is one store behind one or more instances, and brokers whose only
// work is to report.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	stores []store.Store // instances over the same data
	clock  *clock        // nil where the store has its own
	policy placement.Policy
}

// A clock stands still until it is moved.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_000_000, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

func context60(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func inMemory(t *testing.T) *cluster {
	c := &clock{}
	s := memory.Open(memory.Options{Clock: c.now})
	t.Cleanup(func() { s.Close() })
	return &cluster{t: t, ctx: context60(t), stores: []store.Store{s}, clock: c, policy: testPolicy}
}

// inPostgres is two instances on one database.
func inPostgres(t *testing.T) *cluster {
	c := &cluster{t: t, ctx: context60(t), policy: testPolicy}
	url := pgtest.Start(t)
	for range 2 {
		s, err := postgres.Open(c.ctx, postgres.Options{URL: url, MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		c.stores = append(c.stores, s)
	}
	return c
}

// everywhere runs a test on both.
func everywhere(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Run("memory", func(t *testing.T) { test(t, inMemory(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, inPostgres(t)) })
}

var testPolicy = placement.Policy{MoveLimit: 1, FenceLag: 1000, MoveTimeoutMillis: 1_800_000}

// planner is a new instance; instances take turns on the stores.
func (c *cluster) planner(instance int, change ...func(*Options)) *Planner {
	o := Options{Store: c.stores[instance%len(c.stores)], Policy: c.policy, Holder: fmt.Sprint("instance-", instance)}
	if c.clock != nil {
		o.Clock = c.clock.now
	}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

func (c *cluster) store() store.Store { return c.stores[0] }

func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) register(ids ...string) {
	c.t.Helper()
	for _, id := range ids {
		_, err := c.store().RegisterNode(c.ctx, id, model.NodeSpec{
			AdvertiseAddr: "10.0.0.1:" + fmt.Sprint(7000+int(id[len(id)-1])), Region: "local",
			Labels: map[string]string{}, Capacity: model.Capacity{Weight: 1},
		})
		c.check(err)
	}
}

func (c *cluster) lifecycle(id string, to model.Lifecycle) {
	c.t.Helper()
	_, _, err := c.store().SetLifecycle(c.ctx, id, to)
	c.check(err)
}

// stream makes a durable stream and answers with the key of its first shard.
func (c *cluster) stream(name string, shards, factor uint32) model.ShardKey {
	c.t.Helper()
	c.create(model.Stream{Stream: name, Shards: shards, ReplicationFactor: factor, Durable: true})
	return model.ShardKey{TenantID: "t", Namespace: "ns", Stream: name, Kind: model.StreamShard}
}

func (c *cluster) create(s model.Stream) {
	c.t.Helper()
	c.namespace()
	s.TenantID, s.Namespace, s.UID = "t", "ns", "uid-"+s.Stream
	s.Kind, s.Consistency, s.Delivery = model.KindStream, model.Leader, model.AtLeastOnce
	c.check(c.store().CreateStream(c.ctx, s))
}

func (c *cluster) namespace() {
	c.t.Helper()
	if _, err := c.store().Tenant(c.ctx, "t"); err == nil {
		return
	}
	c.check(c.store().CreateTenant(c.ctx, model.Tenant{TenantID: "t"}))
	c.check(c.store().CreateNamespace(c.ctx, model.Namespace{TenantID: "t", Namespace: "ns"}))
}

// put writes an assignment as it is to be, whatever there was.
func (c *cluster) put(a model.Assignment) model.Assignment {
	c.t.Helper()
	token, err := c.store().PlacementToken(c.ctx)
	c.check(err)
	var expected *uint64
	if old, err := c.store().Assignment(c.ctx, a.ShardKey); err == nil {
		expected = &old.Generation
	}
	if a.State == "" {
		a.State = model.Assigning
	}
	if a.Replicas == nil {
		a.Replicas = []string{}
	}
	r, err := c.store().PutAssignmentIf(c.ctx, a, expected, token)
	c.check(err)
	if r.Outcome != store.Written {
		c.t.Fatalf("the assignment was not written: %+v", r)
	}
	return r.Written
}

func (c *cluster) at(k model.ShardKey) model.Assignment {
	c.t.Helper()
	a, err := c.store().Assignment(c.ctx, k)
	c.check(err)
	return a
}

// report lets the leader of a shard report its followers so many records behind.
func (c *cluster) report(k model.ShardKey, drained bool, behind map[string]uint64) {
	c.t.Helper()
	a, tail := c.at(k), uint64(1_000_000)
	r := model.ReplicaReport{
		ShardKey: k, Generation: a.Generation, LeaderOffset: &tail, Drained: drained, Offsets: map[string]uint64{},
	}
	for node, lag := range behind {
		if r.Offsets[node] = tail - lag; lag == 0 {
			r.CaughtUp = append(r.CaughtUp, node)
		}
	}
	outcomes, err := c.store().RecordReports(c.ctx, a.Leader, []model.ReplicaReport{r})
	c.check(err)
	if outcomes[0] != model.ReportAccepted {
		c.t.Fatalf("the report was %s", outcomes[0])
	}
}

// A tally is an observer that counts.
type tally struct {
	nobody
	mu     sync.Mutex
	counts map[string]int
}

func (o *tally) add(what string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	o.counts[what] += n
}

func (o *tally) of(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[what]
}

func (o *tally) ShardsPlaced(n int)                      { o.add("placed", n) }
func (o *tally) ShardMoveStep(step string)               { o.add(step, 1) }
func (o *tally) ShardAssignmentWriteConflict()           { o.add("conflict", 1) }
func (o *tally) PlacementWriteFenced()                   { o.add("fenced", 1) }
func (o *tally) ShardReconcileFailure()                  { o.add("failure", 1) }
func (o *tally) PlacementLeaseTakeover()                 { o.add("takeover", 1) }
func (o *tally) ShardMoveTimedOut()                      { o.add("timed out", 1) }
func (o *tally) ShardMoveDuration(d time.Duration)       { o.add("duration ms", int(d.Milliseconds())) }
func (o *tally) ShardMoveFence(d time.Duration)          { o.add("fence ms", int(d.Milliseconds())) }
func (o *tally) NodeExpiry(n int)                        { o.add("expired", n) }
func (o *tally) NodeTransition(from, to model.Lifecycle) { o.add(string(from)+" to "+string(to), 1) }
func (o *tally) ShardAssignmentChange(op model.Op)       { o.add(string(op), 1) }
func observed(o *tally) func(*Options)                   { return func(p *Options) { p.Observer = o } }
