package apiclient_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// A live is a control plane and clients of it.
type live struct {
	t       *testing.T
	url     string
	boot    string
	signers map[string]*auth.Signer
	store   *memory.Store
}

func startLive(t *testing.T) *live {
	t.Helper()
	l := &live{t: t, signers: make(map[string]*auth.Signer), store: memory.Open(memory.Options{})}
	o := controlplane.DefaultOptions()
	o.Store, o.ValidateName, o.Logger = l.store, wire.ValidateName, slog.New(slog.DiscardHandler)
	o.BindAddr, o.MetricsBind = "127.0.0.1:0", "127.0.0.1:0"
	o.ShutdownPredrain, o.PlacementSettle, o.ShardReconcileInterval = 0, 0, 100*time.Millisecond
	o.Bootstrap = controlplane.BootstrapOptions{Enabled: true, BindAddr: "127.0.0.1:0", Token: "boot-secret", DevTokens: true}
	s, err := controlplane.Start(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
		must(t, l.store.Close())
	})
	l.url, l.boot = "http://"+s.Addr(), "http://"+s.BootstrapAddr()
	return l
}

func (l *live) tenant(name string) {
	l.t.Helper()
	private, err := auth.GenerateKey(rand.Reader)
	must(l.t, err)
	signer := auth.NewSigner("", private)
	must(l.t, l.store.CreateTenant(l.t.Context(), model.Tenant{TenantID: name, DisplayName: name}))
	_, err = l.store.EnsureSigningKey(l.t.Context(), name, model.SigningKey{
		KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent,
	})
	must(l.t, err)
	l.signers[name] = signer
}

// as is a client with permissions in a tenant.
func (l *live) as(tenant string, perms ...string) *apiclient.Client {
	l.t.Helper()
	text, err := l.signers[tenant].Mint(auth.Claims{
		Tenant: tenant, Subject: "tester", Audience: auth.AudienceControlPlane, Permissions: perms,
		IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
	})
	must(l.t, err)
	return newClient(l.t, apiclient.Options{URL: l.url, Token: func(context.Context) (string, error) { return text, nil }})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCatalogRoutes(t *testing.T) {
	l := startLive(t)
	l.tenant("ops")
	ctx := t.Context()
	ops := l.as("ops", "tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*")
	made, err := ops.CreateTenant(ctx, model.Tenant{TenantID: "t1", DisplayName: "One"})
	must(t, err)
	if made.TenantID != "t1" || made.DisplayName != "One" {
		t.Errorf("made %+v", made)
	}
	if _, err := ops.CreateTenant(ctx, model.Tenant{TenantID: "t1", DisplayName: "One"}); apiclient.CodeOf(err) != apiclient.CodeAlreadyExists {
		t.Errorf("twice: %v", err)
	}
	l.tenant("t2")
	t2 := l.as("t2", "tenant.manage:tenant:t2", "ns.manage:namespace:t2/*", "stream.manage:stream:t2/*/*", "cache.manage:cache:t2/*/*",
		"rbac.view:tenant:t2", "rbac.policy.manage:tenant:t2", "rbac.assignment.manage:tenant:t2")
	_, err = t2.CreateNamespace(ctx, model.Namespace{TenantID: "t2", Namespace: "n", DisplayName: "N"})
	must(t, err)
	k := model.NamespaceKey{TenantID: "t2", Namespace: "n"}
	s, err := t2.CreateStream(ctx, k, apiclient.StreamSpec{Stream: "s", Kind: model.KindStream, Shards: 2, Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: true})
	must(t, err)
	age := uint64(60)
	s, err = t2.PatchStream(ctx, s.Key(), model.StreamPatch{Retention: &model.Retention{MaxAgeSeconds: &age}})
	must(t, err)
	if s.UID == "" || s.Shards != 2 || *s.Retention.MaxAgeSeconds != 60 {
		t.Errorf("stream is %+v", s)
	}
	got, err := t2.Stream(ctx, s.Key())
	must(t, err)
	if got.UID != s.UID {
		t.Errorf("stream is %+v", got)
	}
	c, err := t2.CreateCache(ctx, k, apiclient.CacheSpec{Cache: "c", DisplayName: "C"})
	must(t, err)
	name := "D"
	c, err = t2.PatchCache(ctx, c.Key(), model.CachePatch{DisplayName: &name})
	must(t, err)
	if c.DisplayName != "D" || c.Shards != 1 {
		t.Errorf("cache is %+v", c)
	}
	if _, err := t2.Cache(ctx, c.Key()); err != nil {
		t.Error(err)
	}
	both, err := t2.CreateResources(ctx, k, []apiclient.StreamSpec{{Stream: "s2", Kind: model.KindQueue, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce}}, []apiclient.CacheSpec{{Cache: "c2", DisplayName: "C2"}})
	must(t, err)
	if len(both.Streams) != 1 || len(both.Caches) != 1 || both.Streams[0].UID == "" {
		t.Errorf("resources are %+v", both)
	}
	streams, err := t2.Streams(ctx, k)
	must(t, err)
	caches, err := t2.Caches(ctx, k)
	must(t, err)
	namespaces, err := t2.Namespaces(ctx, "t2")
	must(t, err)
	tenants, err := ops.Tenants(ctx)
	must(t, err)
	if len(streams) != 2 || len(caches) != 2 || len(namespaces) != 1 || len(tenants) != 3 {
		t.Errorf("%d streams, %d caches, %d namespaces, %d tenants", len(streams), len(caches), len(namespaces), len(tenants))
	}
	must(t, t2.DeleteStream(ctx, s.Key()))
	must(t, t2.DeleteCache(ctx, c.Key()))
	snapshot, err := ops.StreamsSnapshot(ctx)
	must(t, err)
	if len(snapshot.Tombstones) != 1 || snapshot.Tombstones[0].UID != s.UID || snapshot.Tombstones[0].Name != "s" {
		t.Errorf("tombstones are %+v", snapshot.Tombstones)
	}
	page, err := ops.StreamChanges(ctx, 0, 0)
	must(t, err)
	last := page.Items[len(page.Items)-1]
	if last.Op != model.Deleted || last.Tombstone == nil || last.Tombstone.UID != s.UID || page.NextSeq != snapshot.NextSeq {
		t.Errorf("last change is %+v", last)
	}
	must(t, t2.DeleteNamespace(ctx, k))
	must(t, ops.DeleteTenant(ctx, "t1"))
	if err := ops.DeleteTenant(ctx, "t1"); apiclient.StatusOf(err) != 404 {
		t.Errorf("again: %v", err)
	}
}

func TestNodeAndShardRoutes(t *testing.T) {
	l := startLive(t)
	l.tenant("ops")
	l.tenant("t1")
	ctx := t.Context()
	ops := l.as("ops", "tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*")
	r, err := ops.RegisterNode(ctx, apiclient.Registration{NodeID: "b1", AdvertiseAddr: "10.0.0.1:7000", ClientAddr: "10.0.0.1:5000", Region: "local", Labels: map[string]string{"rack": "a1"}})
	must(t, err)
	if r.Node.Status.Lifecycle != model.Live || r.HeartbeatIntervalMS == 0 || r.ExpiryTimeoutMS == 0 {
		t.Errorf("registered %+v", r)
	}
	h, err := ops.Heartbeat(ctx, "b1", r.Node.Status.Incarnation)
	must(t, err)
	if h.Lifecycle != model.Live {
		t.Errorf("heartbeat %+v", h)
	}
	nodes, err := ops.Nodes(ctx, apiclient.NodeFilter{Lifecycle: model.Live, Region: "local", Labels: map[string]string{"rack": "a1"}})
	must(t, err)
	if len(nodes) != 1 || !nodes[0].Placement.Eligible {
		t.Errorf("nodes %+v", nodes)
	}
	t1 := l.as("t1", "ns.manage:namespace:t1/*", "stream.manage:stream:t1/*/*")
	_, err = t1.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "n", DisplayName: "n"})
	must(t, err)
	_, err = t1.CreateStream(ctx, model.NamespaceKey{TenantID: "t1", Namespace: "n"}, apiclient.StreamSpec{Stream: "s", Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtMostOnce})
	must(t, err)
	page, err := ops.AssignmentChanges(ctx, 0, 20*time.Second)
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].Assignment.Leader != "b1" {
		t.Fatalf("assignment changes %+v", page)
	}
	key := page.Items[0].Key
	leads, err := ops.Assignments(ctx, "b1")
	must(t, err)
	if len(leads) != 1 || leads[0].ShardKey != key {
		t.Errorf("assignments %+v", leads)
	}
	offset := uint64(5)
	outcomes, err := ops.ReportShards(ctx, "b1", 0, []apiclient.ShardReport{
		{ShardKey: key, Generation: leads[0].Generation, CaughtUp: []string{}, LeaderOffset: &offset},
		{ShardKey: key, Generation: leads[0].Generation + 7, CaughtUp: []string{}},
	})
	must(t, err)
	if len(outcomes) != 2 || outcomes[0].Outcome != model.ReportAccepted || outcomes[1].Outcome != model.ReportFutureGeneration {
		t.Errorf("outcomes %+v", outcomes)
	}
	if _, err := ops.StartMove(ctx, key, "b9", false); apiclient.CodeOf(err) != "unknown_node" {
		t.Errorf("move: %v", err)
	}
	if _, err := ops.CancelMove(ctx, key); apiclient.CodeOf(err) != "not_moving" {
		t.Errorf("cancel: %v", err)
	}
	if moves, err := ops.Moves(ctx); err != nil || moves.Paused || len(moves.Items) != 0 {
		t.Errorf("moves %+v, %v", moves, err)
	}
	if paused, err := ops.PauseMoves(ctx, true); err != nil || !paused {
		t.Errorf("pause: %v, %v", paused, err)
	}
	if paused, err := ops.PauseMoves(ctx, false); err != nil || paused {
		t.Errorf("resume: %v, %v", paused, err)
	}
	if _, err := ops.Plan(ctx); err != nil {
		t.Error(err)
	}
	if _, err := ops.Replication(ctx); err != nil {
		t.Error(err)
	}
	if _, err := ops.Abandon(ctx, key); err != nil && apiclient.StatusOf(err) != 409 {
		t.Errorf("abandon: %v", err)
	}
	if n, err := ops.DrainNode(ctx, "b1"); err != nil || n.Status.Lifecycle != model.Draining {
		t.Errorf("drain: %+v, %v", n, err)
	}
	region := "local"
	if _, err := ops.PatchNode(ctx, "b1", model.NodePatch{Region: &region}); err != nil {
		t.Error(err)
	}
	if err := ops.DeleteNode(ctx, "b1"); apiclient.StatusOf(err) != 409 {
		t.Errorf("delete of a serving node: %v", err)
	}
	if n, err := ops.DeregisterNode(ctx, "b1"); err != nil || n.Status.Lifecycle != model.Left {
		t.Errorf("deregister: %+v, %v", n, err)
	}
	if _, err := ops.Node(ctx, "b1"); err != nil {
		t.Error(err)
	}
}

func TestAuthRoutes(t *testing.T) {
	l := startLive(t)
	l.tenant("ops")
	ctx := t.Context()
	boot := newClient(t, apiclient.Options{URL: l.boot})
	b, err := boot.Bootstrap(ctx, "t1", "boot-secret", apiclient.BootstrapRequest{DisplayName: "One", InitialAdminPrincipals: []string{"p"}})
	must(t, err)
	if b.TenantID != "t1" || b.KID == "" {
		t.Errorf("bootstrap %+v", b)
	}
	if _, err := boot.Bootstrap(ctx, "t1", "boot-secret", apiclient.BootstrapRequest{DisplayName: "One", InitialAdminPrincipals: []string{"p"}}); apiclient.CodeOf(err) != "already_initialized" {
		t.Errorf("again: %v", err)
	}
	if _, err := boot.Bootstrap(ctx, "t1", "wrong-secret", apiclient.BootstrapRequest{}); apiclient.StatusOf(err) != 401 || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("wrong token: %v", err)
	}
	dev, err := boot.DevToken(ctx, "t1", "boot-secret", apiclient.DevTokenRequest{Subject: "dev", Audience: apiclient.AudienceControlPlane, Permissions: []string{
		"tenant.manage:tenant:t1", "rbac.view:tenant:t1", "rbac.policy.manage:tenant:t1", "rbac.assignment.manage:tenant:t1"}})
	must(t, err)
	c := newClient(t, apiclient.Options{URL: l.url, Token: func(context.Context) (string, error) { return dev.FelixToken, nil }})
	set, err := c.JWKS(ctx, "t1")
	must(t, err)
	if keys, err := auth.ParseJWKS(set); err != nil || keys[0].ID != b.KID {
		t.Errorf("keys %v, %v", keys, err)
	}
	if _, err := c.JWKS(ctx, "nobody"); apiclient.StatusOf(err) != 404 {
		t.Errorf("unknown tenant: %v", err)
	}
	staged, err := c.StageSigningKey(ctx, "t1")
	must(t, err)
	i := slices.IndexFunc(staged.Verifying, func(kid string) bool { return kid != b.KID })
	if i < 0 || staged.Current != b.KID {
		t.Fatalf("staged %+v", staged)
	}
	if active, err := c.ActivateSigningKey(ctx, "t1", staged.Verifying[i]); err != nil || active.Current != staged.Verifying[i] {
		t.Errorf("active %+v, %v", active, err)
	}
	if _, err := c.RetireSigningKey(ctx, "t1", staged.Verifying[i]); apiclient.StatusOf(err) != 409 {
		t.Errorf("retire the current key: %v", err)
	}
	if k, err := c.SigningKeys(ctx, "t1"); err != nil || len(k.Verifying) < 1 {
		t.Errorf("keys %+v, %v", k, err)
	}
	p := model.Policy{Subject: "role:reader", Object: "stream:t1/n/*", Action: "stream.subscribe"}
	must(t, c.AddPolicy(ctx, "t1", p))
	policies, err := c.Policies(ctx, "t1")
	must(t, err)
	if !slices.Contains(policies, p) {
		t.Errorf("policies %+v", policies)
	}
	g := model.Grouping{User: "u", Role: "role:reader"}
	must(t, c.AddGrouping(ctx, "t1", g))
	groupings, err := c.Groupings(ctx, "t1")
	must(t, err)
	if !slices.Contains(groupings, g) {
		t.Errorf("groupings %+v", groupings)
	}
	must(t, c.RemoveGrouping(ctx, "t1", g))
	must(t, c.RemovePolicy(ctx, "t1", p))
	must(t, c.PutIssuer(ctx, "t1", model.IdpIssuer{Issuer: "https://idp.example/x", Audiences: []string{"felix"}, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}))
	if err := c.DeleteIssuer(ctx, "t1", "https://idp.example/x"); err != nil && apiclient.StatusOf(err) != 403 {
		t.Errorf("delete issuer: %v", err)
	}
	if n, err := c.RevokeRefreshTokens(ctx, "t1", "u"); err != nil || n != 0 {
		t.Errorf("revoked %d, %v", n, err)
	}
	if _, err := c.Exchange(ctx, "t1", "not-a-token", apiclient.ExchangeRequest{}); apiclient.StatusOf(err)/100 != 4 || strings.Contains(err.Error(), "not-a-token") {
		t.Errorf("exchange: %v", err)
	}
	if _, err := c.Refresh(ctx, "t1", "no.token", ""); apiclient.StatusOf(err) != 403 {
		t.Errorf("refresh: %v", err)
	}
	if _, err := c.Delegate(ctx, "t1", "not-a-token", nil); apiclient.StatusOf(err)/100 != 4 {
		t.Errorf("delegate: %v", err)
	}
}

func TestSystemRoutes(t *testing.T) {
	l := startLive(t)
	l.tenant("ops")
	ctx := t.Context()
	c := l.as("ops", "tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*")
	if i, err := c.SystemInfo(ctx); err != nil || i.APIVersion != "v1" {
		t.Errorf("info %+v, %v", i, err)
	}
	must(t, c.Live(ctx))
	must(t, c.Ready(ctx))
	regions, err := c.Regions(ctx)
	must(t, err)
	if len(regions) != 1 {
		t.Errorf("regions %+v", regions)
	}
	if _, err := c.Region(ctx, regions[0].RegionID); err != nil {
		t.Error(err)
	}
	if doc, err := c.OpenAPI(ctx); err != nil || len(doc) < 1000 {
		t.Errorf("document of %d bytes, %v", len(doc), err)
	}
	b := model.Bridge{Source: "eu", Destination: "us"}
	must(t, c.PutBridge(ctx, b))
	if all, err := c.Bridges(ctx); err != nil || !slices.Contains(all, b) {
		t.Errorf("bridges %+v, %v", all, err)
	}
	must(t, c.DeleteBridge(ctx, b))
	if _, err := c.FleetFeatures(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.FinalizeFeature(ctx, "no-such", true); apiclient.StatusOf(err)/100 != 4 {
		t.Errorf("finalize: %v", err)
	}
}
