package api_test

import (
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// The typed client and the API agree on a whole life.
func TestTypedClient(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	c, err := apiclient.New(apiclient.Options{URL: r.base})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	as := func(token string) *apiclient.Client { return c.WithToken(tokenSource(token)) }
	ns := model.NamespaceKey{TenantID: "t1", Namespace: "ns"}
	admin, op := as(r.admin("t1")), as(r.operator())
	if _, err := admin.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "ns"}); err != nil {
		t.Fatal(err)
	}
	made, err := admin.CreateStream(ctx, ns, apiclient.StreamSpec{
		Stream: "s", Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce,
	})
	if err != nil || made.UID == "" {
		t.Fatalf("%+v %v", made, err)
	}
	if _, err := admin.Stream(ctx, model.StreamKey{TenantID: "t1", Namespace: "ns", Stream: "x"}); apiclient.CodeOf(err) != apiclient.CodeNotFound {
		t.Fatal(err)
	}
	if _, err := op.RegisterNode(ctx, apiclient.Registration{NodeID: "n1", AdvertiseAddr: "10.0.0.1:7000", Region: "local"}); err != nil {
		t.Fatal(err)
	}
	if list, err := op.Nodes(ctx, apiclient.NodeFilter{}); err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if f, err := op.FleetFeatures(ctx); err != nil || len(f.ServingNodes) != 1 {
		t.Fatalf("%+v %v", f, err)
	}
	if snap, err := op.StreamsSnapshot(ctx); err != nil || len(snap.Items) != 1 {
		t.Fatalf("%+v %v", snap, err)
	}
}
