package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// nodeBody registers a node, with fields put in place of its own; nil takes one
// away.
func nodeBody(id string, change map[string]any) map[string]any {
	b := map[string]any{"node_id": id, "advertise_addr": "10.0.0." + fmt.Sprint(1+int(id[len(id)-1])%250) + ":7000", "region": "local"}
	for field, value := range change {
		if value == nil {
			delete(b, field)
			continue
		}
		b[field] = value
	}
	return b
}

type registered struct {
	Node                model.Node
	HeartbeatIntervalMS int      `json:"heartbeat_interval_ms"`
	ExpiryTimeoutMS     int      `json:"expiry_timeout_ms"`
	FleetFeatures       []string `json:"fleet_features"`
}

type nodeView struct {
	Node      model.Node
	Placement struct {
		Eligible, Routable bool
		Reasons            []string
		HeartbeatAgeMS     *int `json:"heartbeat_age_ms"`
	}
}

func TestRegistration(t *testing.T) {
	r := newRig(t)
	own := r.token("ops", "node.manage:node:broker-1")
	var reg registered
	r.ok(200, "POST", "/v1/nodes", own, nodeBody("broker-1", map[string]any{
		"client_addr": "10.0.0.4:5000", "kafka_addr": "kafka.example:9092", "zone": "a", "labels": map[string]string{"rack": "a1"},
		"capacity": map[string]any{"max_shards": nil, "weight": 1}, "features": []string{"b", "a", "b"},
	})).into(t, &reg)
	if reg.HeartbeatIntervalMS != 5000 || reg.ExpiryTimeoutMS != 15000 || reg.FleetFeatures == nil ||
		reg.Node.Status.Lifecycle != model.Live || reg.Node.Status.Incarnation != 0 || reg.Node.Spec.Labels["rack"] != "a1" ||
		fmt.Sprint(reg.Node.Spec.Features) != "[a b]" || reg.Node.Spec.Capacity.Weight != 1 {
		t.Fatalf("%+v", reg)
	}
	r.ok(200, "POST", "/v1/nodes", own, nodeBody("broker-1", map[string]any{"client_addr": nil})).into(t, &reg)
	if reg.Node.Status.Incarnation != 1 || reg.Node.Spec.Capacity.Weight != 1 || reg.Node.Spec.Capacity.MaxShards != nil {
		t.Fatalf("%+v", reg)
	}
	// Another node cannot have the address, and one's own credential is for one's
	// own id.
	r.want(409, "conflict", "POST", "/v1/nodes", r.operator(), nodeBody("broker-2", map[string]any{"advertise_addr": reg.Node.Spec.AdvertiseAddr}))
	r.want(403, "forbidden", "POST", "/v1/nodes", own, nodeBody("broker-2", nil))
	r.want(403, "forbidden", "POST", "/v1/nodes", own, nodeBody("BROKER", nil))
	r.want(403, "forbidden", "POST", "/v1/nodes", r.token("ops", "node.view:cluster:*"), nodeBody("broker-1", nil))
}

// What a node cannot be is a conflict, and its field is named; what is no
// registration at all is a bad request.
func TestNodeFields(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	for _, c := range []struct {
		field string
		value any
	}{
		{"node_id", "Broker"}, {"node_id", strings.Repeat("a", 254)}, {"node_id", "a/b"},
		{"advertise_addr", "broker:7000"}, {"advertise_addr", "10.0.0.4"}, {"advertise_addr", "10.0.0.4:0"}, {"advertise_addr", "0.0.0.0:7000"},
		{"client_addr", "host:5000"}, {"client_addr", "10.0.0.4:0"}, {"kafka_addr", "kafka"}, {"kafka_addr", "kafka:0"}, {"kafka_addr", "a b:1"}, {"kafka_addr", "fe80::1:9092"},
		{"region", " "}, {"region", ""}, {"labels", map[string]string{"": "x"}}, {"labels", map[string]string{"k": strings.Repeat("v", 254)}},
		{"capacity", map[string]any{"max_shards": 0}}, {"features", []string{"A"}}, {"zone", "a\nb"},
	} {
		id := "broker-1"
		a := r.want(409, "conflict", "POST", "/v1/nodes", op, nodeBody(id, map[string]any{c.field: c.value}))
		if f := a.failure(t); !strings.Contains(f.Message, c.field) {
			t.Errorf("%s = %v: the message does not name the field: %s", c.field, c.value, f.Message)
		}
	}
	for _, field := range []string{"node_id", "advertise_addr", "region"} {
		r.want(400, "validation_error", "POST", "/v1/nodes", op, nodeBody("broker-1", map[string]any{field: nil}))
	}
	r.want(400, "validation_error", "POST", "/v1/nodes", op, nodeBody("broker-1", map[string]any{"status": map[string]any{"lifecycle": "live"}}))
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("broker-1", map[string]any{"advertise_addr": "[fd00::4]:7000", "kafka_addr": "[fd00::4]:9092"}))
}

func TestNodeLifecycle(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	own := r.token("ops", "node.manage:node:n1")
	r.ok(200, "POST", "/v1/nodes", own, nodeBody("n1", nil))
	var n model.Node
	for range 2 {
		if r.ok(200, "POST", "/v1/nodes/n1/drain", own, nil).into(t, &n); n.Status.Lifecycle != model.Draining {
			t.Fatalf("%+v", n)
		}
	}
	r.want(409, "conflict", "DELETE", "/v1/nodes/n1", op, nil)
	if r.ok(200, "PATCH", "/v1/nodes/n1", own, `{"lifecycle":"live","labels":{"a":"b"},"region":"eu","capacity":{"max_shards":3}}`).into(t, &n); n.Status.Lifecycle != model.Live ||
		n.Spec.Labels["a"] != "b" || n.Spec.Region != "eu" || *n.Spec.Capacity.MaxShards != 3 || n.Spec.Capacity.Weight != 1 {
		t.Fatalf("%+v", n)
	}
	for _, bad := range []string{`{"lifecycle":"down"}`, `{"lifecycle":"left"}`, `{"spec":{}}`} {
		r.want(400, "validation_error", "PATCH", "/v1/nodes/n1", own, bad)
	}
	for _, bad := range []string{`{"region":" "}`, `{"labels":{"":"x"}}`, `{"capacity":{"max_shards":0}}`} {
		r.want(409, "conflict", "PATCH", "/v1/nodes/n1", own, bad)
	}
	for range 2 {
		if r.ok(200, "POST", "/v1/nodes/n1/deregister", own, nil).into(t, &n); n.Status.Lifecycle != model.Left {
			t.Fatalf("%+v", n)
		}
	}
	r.want(409, "conflict", "POST", "/v1/nodes/n1/drain", own, nil)
	r.want(409, "conflict", "PATCH", "/v1/nodes/n1", own, `{"lifecycle":"live"}`)
	r.want(403, "forbidden", "DELETE", "/v1/nodes/n1", own, nil)
	r.ok(204, "DELETE", "/v1/nodes/n1", op, nil)
	for _, call := range [][3]string{{"GET", "", ""}, {"DELETE", "", ""}, {"PATCH", "", "{}"}, {"POST", "/drain", ""}, {"POST", "/deregister", ""}, {"POST", "/heartbeat", `{"incarnation":0}`}} {
		var body any
		if call[2] != "" {
			body = call[2]
		}
		r.want(404, "not_found", call[0], "/v1/nodes/n1"+call[1], op, body)
		r.want(403, "forbidden", call[0], "/v1/nodes/n1"+call[1], r.token("ops", "node.manage:node:n2"), body)
	}
}

func TestHeartbeats(t *testing.T) {
	r := newRig(t)
	own := r.token("ops", "node.manage:node:n1")
	r.ok(200, "POST", "/v1/nodes", own, nodeBody("n1", nil))
	r.ok(200, "POST", "/v1/nodes", own, nodeBody("n1", nil))
	var h struct {
		NodeID              string          `json:"node_id"`
		Lifecycle           model.Lifecycle `json:"lifecycle"`
		HeartbeatIntervalMS int             `json:"heartbeat_interval_ms"`
		ExpiryTimeoutMS     int             `json:"expiry_timeout_ms"`
		FleetFeatures       []string        `json:"fleet_features"`
	}
	r.ok(200, "POST", "/v1/nodes/n1/heartbeat", own, `{"incarnation":1}`).into(t, &h)
	if h.NodeID != "n1" || h.Lifecycle != model.Live || h.HeartbeatIntervalMS != 5000 || h.ExpiryTimeoutMS != 15000 || h.FleetFeatures == nil {
		t.Fatalf("%+v", h)
	}
	r.want(409, "conflict", "POST", "/v1/nodes/n1/heartbeat", own, `{"incarnation":0}`)
	r.want(400, "validation_error", "POST", "/v1/nodes/n1/heartbeat", own, `{}`)
	r.ok(200, "POST", "/v1/nodes/n1/deregister", own, nil)
	if r.ok(200, "POST", "/v1/nodes/n1/heartbeat", own, `{"incarnation":1}`).into(t, &h); h.Lifecycle != model.Left {
		t.Fatalf("a heartbeat revived the node: %+v", h)
	}
}

func TestNodeFilters(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	for i, change := range []map[string]any{
		{"region": "eu", "labels": map[string]string{"rack": "1", "disk": "ssd"}},
		{"region": "eu", "labels": map[string]string{"rack": "2", "disk": "ssd"}},
		{"region": "us", "labels": map[string]string{"rack": "1", "disk": ""}},
	} {
		r.ok(200, "POST", "/v1/nodes", op, nodeBody(fmt.Sprintf("n%d", i), change))
	}
	r.ok(200, "POST", "/v1/nodes/n1/drain", op, nil)
	view := r.token("ops", "node.view:cluster:*")
	for query, want := range map[string]string{
		"": "n0 n1 n2", "?region=eu": "n0 n1", "?lifecycle=draining": "n1", "?lifecycle=live&region=eu": "n0", "?label=rack%3D1": "n0 n2",
		"?label=rack%3D1&label=disk%3Dssd": "n0", "?label=disk": "n2", "?label=none%3D": "", "?region=mars": "", "?limit=2": "n0 n1",
	} {
		var list struct{ Items []nodeView }
		r.ok(200, "GET", "/v1/nodes"+query, view, nil).into(t, &list)
		var got []string
		for _, v := range list.Items {
			got = append(got, v.Node.NodeID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", query, got, want)
		}
	}
	r.want(400, "validation_error", "GET", "/v1/nodes?lifecycle=dead", view, nil)
	var v nodeView
	r.ok(200, "GET", "/v1/nodes/n1", view, nil).into(t, &v)
	if v.Placement.Eligible || !v.Placement.Routable || len(v.Placement.Reasons) != 1 || v.Placement.HeartbeatAgeMS == nil {
		t.Fatalf("a draining node: %+v", v)
	}
	r.want(403, "forbidden", "GET", "/v1/nodes/n1", r.token("ops", "node.manage:cluster:*"), nil)
}

func TestReplicaStatus(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	ns := r.namespace("t1")
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n1", nil))
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n2", nil))
	r.ok(201, "POST", ns+"/streams", r.admin("t1"), streamBody("s", map[string]any{"shards": 1}))
	key := model.ShardKey{TenantID: "t1", Namespace: "ns", Stream: "s", Kind: model.StreamShard}
	var a model.Assignment
	eventually(t, "the stream is placed", func() bool {
		var err error
		a, err = r.store.Assignment(t.Context(), key)
		return err == nil
	})
	other := "n1"
	if a.Leader == "n1" {
		other = "n2"
	}
	shard := func(name string, generation uint64) map[string]any {
		return map[string]any{"tenant_id": "t1", "namespace": "ns", "stream": name, "shard": 0, "generation": generation, "caught_up": []string{}}
	}
	type outcomes struct {
		Code   string
		Shards []struct {
			model.ShardKey
			Generation uint64
			Outcome    model.ReportOutcome
		}
	}
	var got outcomes
	r.ok(200, "POST", "/v1/nodes/"+a.Leader+"/replica-status", op, map[string]any{"incarnation": 0, "shards": []any{shard("s", a.Generation)}}).into(t, &got)
	if len(got.Shards) != 1 || got.Shards[0].Outcome != model.ReportAccepted || got.Shards[0].Kind != model.StreamShard || got.Code != "" {
		t.Fatalf("%+v", got)
	}
	mixed := map[string]any{"shards": []any{shard("nowhere", 0), shard("s", a.Generation+1), shard("s", a.Generation)}}
	ans := r.want(409, "conflict", "POST", "/v1/nodes/"+a.Leader+"/replica-status", op, mixed)
	got = outcomes{}
	ans.into(t, &got)
	want := []model.ReportOutcome{model.ReportUnassigned, model.ReportFutureGeneration, model.ReportAccepted}
	for i, w := range want {
		if len(got.Shards) != len(want) || got.Shards[i].Outcome != w {
			t.Fatalf("outcomes %+v, want %v", got.Shards, want)
		}
	}
	ans = r.want(409, "conflict", "POST", "/v1/nodes/"+other+"/replica-status", op, map[string]any{"shards": []any{shard("s", a.Generation)}})
	got = outcomes{}
	if ans.into(t, &got); got.Shards[0].Outcome != model.ReportNotLeader {
		t.Fatalf("%+v", got)
	}
	for _, bad := range []string{
		`{}`, `{"shards":[{}]}`, `{"shards":[{"tenant_id":"t1","namespace":"ns","stream":"s","shard":0,"kind":"queue","generation":0,"caught_up":[]}]}`,
		`{"shards":[{"tenant_id":"t1","namespace":"ns","stream":"s","shard":0,"generation":18446744073709551615,"caught_up":[]}]}`,
		`{"shards":[{"tenant_id":"t1","namespace":"ns","stream":"s","shard":0,"generation":0,"caught_up":["a b"]}]}`,
	} {
		r.want(400, "validation_error", "POST", "/v1/nodes/"+a.Leader+"/replica-status", op, bad)
	}
	r.want(403, "forbidden", "POST", "/v1/nodes/n1/replica-status", r.token("ops", "node.manage:node:n2"), mixed)
	r.ok(200, "POST", "/v1/nodes/n1/replica-status", op, `{"shards":[]}`)
}
