package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/model"
)

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tokenSource(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

func TestBridges(t *testing.T) {
	r := newRig(t, func(o *controlplane.Options) { o.RegionBridges = []model.Bridge{{Source: "eu", Destination: "us"}} })
	op, view := r.operator(), r.token("ops", "node.view:cluster:*")
	eventually(t, "the bridges of the settings are stored", func() bool {
		return strings.TrimSpace(string(r.ok(200, "GET", "/v1/bridges", view, nil).body)) == `{"items":[{"source":"eu","destination":"us"}]}`
	})
	r.ok(204, "POST", "/v1/bridges", op, `{"source":"us","destination":"eu"}`)
	r.ok(204, "POST", "/v1/bridges", op, `{"source":"us","destination":"eu"}`)
	r.want(400, "validation_error", "POST", "/v1/bridges", op, `{"source":"us","destination":"us"}`)
	r.want(400, "validation_error", "POST", "/v1/bridges", op, `{"source":"us","destination":" "}`)
	r.want(403, "forbidden", "POST", "/v1/bridges", view, `{"source":"us","destination":"ap"}`)
	r.want(403, "forbidden", "DELETE", "/v1/bridges/us/eu", view, nil)
	r.ok(204, "DELETE", "/v1/bridges/us/eu", op, nil)
	r.want(404, "not_found", "DELETE", "/v1/bridges/us/eu", op, nil)
}

func TestFleetFeatures(t *testing.T) {
	r := newRig(t, func(o *controlplane.Options) { o.FleetFeatures = []string{"kafka", "zstd"} })
	op := r.operator()
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n1", map[string]any{"features": []string{"zstd"}}))
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n2", nil))
	if a := r.ok(200, "GET", "/v1/fleet/features", op, nil); strings.TrimSpace(string(a.body)) != `{"supported":["kafka","zstd"],"enabled":[],"serving_nodes":["n1","n2"]}` {
		t.Fatalf("%s", a.body)
	}
	r.want(404, "not_found", "POST", "/v1/fleet/features/tape/finalize", op, nil)
	dry := r.ok(200, "POST", "/v1/fleet/features/zstd/finalize", op, `{"dry_run":true}`)
	if strings.TrimSpace(string(dry.body)) != `{"feature":"zstd","dry_run":true,"enabled":false,"would_enable":false,"lacking":["n2"],"serving_nodes":["n1","n2"]}` {
		t.Fatalf("%s", dry.body)
	}
	if a := r.want(409, "conflict", "POST", "/v1/fleet/features/zstd/finalize", op, nil); !strings.Contains(a.failure(t).Message, "n2") {
		t.Errorf("%s", a.body)
	}
	r.ok(200, "POST", "/v1/nodes/n2/deregister", op, nil)
	for range 2 { // for good, and repeated without harm
		if a := r.ok(200, "POST", "/v1/fleet/features/zstd/finalize", op, nil); !strings.Contains(string(a.body), `"enabled":true`) {
			t.Fatalf("%s", a.body)
		}
	}
	r.want(409, "conflict", "POST", "/v1/nodes", op, nodeBody("n2", nil))
	var reg registered
	if r.ok(200, "POST", "/v1/nodes", op, nodeBody("n2", map[string]any{"features": []string{"zstd"}})).into(t, &reg); fmt.Sprint(reg.FleetFeatures) != "[zstd]" {
		t.Fatalf("%+v", reg)
	}
	r.want(403, "forbidden", "POST", "/v1/fleet/features/zstd/finalize", r.token("ops", "node.view:cluster:*"), nil)
}

func TestPlacementRoutes(t *testing.T) {
	r := newRig(t)
	op, view := r.operator(), r.token("ops", "node.view:cluster:*")
	ns := r.namespace("t1")
	r.ok(201, "POST", ns+"/streams", r.admin("t1"), streamBody("s", map[string]any{"shards": 1}))
	var plan struct {
		Paused bool
		Items  []struct{ Stream, Action, Reason string }
	}
	if r.ok(200, "GET", "/v1/placement/plan", view, nil).into(t, &plan); len(plan.Items) != 1 || plan.Items[0].Action != "unplaceable" || plan.Items[0].Reason == "" {
		t.Fatalf("%+v", plan)
	}
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n1", nil))
	key := model.ShardKey{TenantID: "t1", Namespace: "ns", Stream: "s", Kind: model.StreamShard}
	eventually(t, "the stream is placed", func() bool {
		_, err := r.store.Assignment(t.Context(), key)
		return err == nil
	})
	var list struct{ Items []model.Assignment }
	if r.ok(200, "GET", "/v1/shard-assignments?leader=n1", view, nil).into(t, &list); len(list.Items) != 1 || list.Items[0].Leader != "n1" {
		t.Fatalf("%+v", list)
	}
	if r.ok(200, "GET", "/v1/shard-assignments?leader=n2", view, nil).into(t, &list); len(list.Items) != 0 {
		t.Fatalf("%+v", list)
	}
	for _, verb := range []string{"pause", "resume"} {
		r.want(403, "forbidden", "POST", "/v1/placement/"+verb, view, nil)
		a := r.ok(200, "POST", "/v1/placement/"+verb, op, nil)
		if want := fmt.Sprintf(`{"paused":%v}`, verb == "pause"); strings.TrimSpace(string(a.body)) != want {
			t.Errorf("%s: %s", verb, a.body)
		}
		if a := r.ok(200, "GET", "/v1/shard-moves", view, nil); !strings.Contains(string(a.body), fmt.Sprintf(`"paused":%v`, verb == "pause")) {
			t.Errorf("%s: %s", verb, a.body)
		}
	}
	r.ok(200, "GET", "/v1/placement/replication", view, nil)
	move := func(change map[string]any) map[string]any {
		b := map[string]any{"tenant_id": "t1", "namespace": "ns", "stream": "s", "shard": 0, "destination": "n1"}
		for k, v := range change {
			b[k] = v
		}
		return b
	}
	r.want(404, "unknown_shard", "POST", "/v1/shard-moves", op, move(map[string]any{"stream": "none"}))
	r.want(404, "unknown_shard", "POST", "/v1/shard-moves", op, move(map[string]any{"kind": "cache"}))
	r.want(404, "unknown_node", "POST", "/v1/shard-moves", op, move(map[string]any{"destination": "n9"}))
	r.want(409, "already_leader", "POST", "/v1/shard-moves", op, move(nil))
	r.want(400, "validation_error", "POST", "/v1/shard-moves", op, move(map[string]any{"kind": "queue"}))
	r.want(400, "validation_error", "POST", "/v1/shard-moves", op, move(map[string]any{"shard": -1}))
	r.want(403, "forbidden", "POST", "/v1/shard-moves", view, move(nil))
	const one = "/v1/shard-moves/t1/ns/s/0"
	r.want(409, "not_moving", "DELETE", one, op, nil)
	r.want(404, "unknown_shard", "DELETE", one+"?kind=cache", op, nil)
	r.want(400, "validation_error", "DELETE", "/v1/shard-moves/t1/ns/s/x", op, nil)
	r.want(400, "validation_error", "DELETE", one+"?kind=queue", op, nil)
	r.want(403, "forbidden", "DELETE", one, view, nil)
	r.want(403, "forbidden", "POST", "/v1/placement/abandon/t1/ns/s/0", view, nil)
	if a := r.do("POST", "/v1/placement/abandon/t1/ns/s/0", op, nil); a.status != 409 {
		t.Errorf("abandoning a shard that is served: %d %s", a.status, a.body)
	}
	// A dry run of a real move, and the move.
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n2", nil))
	dry := r.ok(200, "POST", "/v1/shard-moves", op, move(map[string]any{"destination": "n2", "dry_run": true}))
	if !strings.Contains(string(dry.body), `"step":"stage"`) {
		t.Fatalf("%s", dry.body)
	}
	if a := r.ok(200, "GET", "/v1/shard-moves", view, nil); !strings.Contains(string(a.body), `"items":[]`) {
		t.Fatalf("a dry run moved: %s", a.body)
	}
	var result struct {
		Step       string
		Assignment model.Assignment
	}
	r.ok(200, "POST", "/v1/shard-moves", op, move(map[string]any{"destination": "n2"})).into(t, &result)
	if result.Step != "stage" || result.Assignment.Successor != "n2" {
		t.Fatalf("%+v", result)
	}
	r.want(409, "already_moving", "POST", "/v1/shard-moves", op, move(map[string]any{"destination": "n2"}))
	if r.ok(200, "DELETE", one, op, nil).into(t, &result); result.Step != "cancel" {
		t.Fatalf("%+v", result)
	}
}
