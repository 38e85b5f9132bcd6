package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

type page struct {
	Items   []map[string]any
	NextSeq *uint64 `json:"next_seq"`
}

// The five feeds have the shapes of control plane 5.1.
func TestFeedShapes(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin, view := r.admin("t1"), r.token("ops", "node.view:cluster:*")
	r.ok(201, "POST", ns+"/streams", admin, streamBody("s", map[string]any{"shards": 1}))
	r.ok(201, "POST", ns+"/caches", admin, `{"cache":"c","display_name":""}`)
	r.ok(200, "POST", "/v1/nodes", r.operator(), nodeBody("n1", nil))
	eventually(t, "both are placed", func() bool {
		all, err := r.store.Assignments(t.Context())
		return err == nil && len(all) == 2
	})
	for kind, shape := range map[string]struct{ op, identity, payload string }{
		"tenants":           {"created", "tenant_id", "tenant"},
		"namespaces":        {"created", "key", "namespace"},
		"streams":           {"created", "key", "stream"},
		"caches":            {"created", "key", "cache"},
		"shard-assignments": {"assigned", "key", "assignment"},
	} {
		var snap, changes page
		r.ok(200, "GET", "/v1/"+kind+"/snapshot", view, nil).into(t, &snap)
		r.ok(200, "GET", "/v1/"+kind+"/changes?since=0", view, nil).into(t, &changes)
		if snap.NextSeq == nil || changes.NextSeq == nil || *snap.NextSeq != *changes.NextSeq || len(snap.Items) == 0 || len(changes.Items) == 0 {
			t.Fatalf("%s: snapshot %+v, changes %+v", kind, snap, changes)
		}
		first := changes.Items[0]
		if first["seq"] != 0.0 || first["op"] != shape.op || first[shape.identity] == nil || first[shape.payload] == nil {
			t.Errorf("%s: %v", kind, first)
		}
		for _, path := range []string{"/snapshot", "/changes"} {
			r.want(403, "forbidden", "GET", "/v1/"+kind+path, r.token("ops", "tenant.manage:cluster:*", "node.manage:cluster:*"), nil)
			r.want(401, "unauthorized", "GET", "/v1/"+kind+path, "", nil)
		}
	}
	// Numbers that are none are ignored.
	var changes page
	r.ok(200, "GET", "/v1/streams/changes?since=x&wait_ms=-5", view, nil).into(t, &changes)
	if len(changes.Items) != 1 {
		t.Fatalf("%+v", changes)
	}
}

// A deleted stream leaves a tombstone, in its change and in snapshots.
func TestTombstonesTravel(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin, view := r.admin("t1"), r.token("ops", "node.view:cluster:*")
	var s model.Stream
	r.ok(201, "POST", ns+"/streams", admin, streamBody("s", nil)).into(t, &s)
	r.ok(204, "DELETE", ns+"/streams/s", admin, nil)
	var snap model.Snapshot[model.Stream]
	r.ok(200, "GET", "/v1/streams/snapshot", view, nil).into(t, &snap)
	if len(snap.Items) != 0 || len(snap.Tombstones) != 1 || snap.Tombstones[0].UID != s.UID {
		t.Fatalf("%+v", snap)
	}
	var changes model.Page[model.StreamChange]
	r.ok(200, "GET", "/v1/streams/changes?since=1", view, nil).into(t, &changes)
	if len(changes.Items) != 1 || changes.Items[0].Op != model.Deleted || changes.Items[0].Tombstone == nil || changes.Items[0].Tombstone.UID != s.UID {
		t.Fatalf("%+v", changes)
	}
	r.want(404, "not_found", "GET", ns+"/streams/s", admin, nil)
	if a := r.ok(200, "GET", "/v1/tenants/snapshot", view, nil); strings.Contains(string(a.body), "tombstones") {
		t.Errorf("tenants have tombstones: %s", a.body)
	}
}

// A page is bounded, since is inclusive, and what was evicted shows in band.
func TestFeedPagesAndGaps(t *testing.T) {
	st := memory.Open(memory.Options{Limits: store.Limits{ChangesPage: 3, ChangesKept: 5}})
	defer st.Close()
	r := startRig(t, st)
	r.tenant("ops")
	view, op := r.token("ops", "node.view:cluster:*"), r.operator()
	for i := range 9 { // with ops, sequences 0 to 9; kept are 5 to 9
		r.ok(201, "POST", "/v1/tenants", op, map[string]string{"tenant_id": fmt.Sprintf("t%d", i), "display_name": ""})
	}
	for since, want := range map[uint64]struct {
		first, n int
		verdict  model.Verdict
	}{0: {5, 3, model.Resnapshot}, 4: {5, 3, model.Resnapshot}, 5: {5, 3, model.Apply}, 8: {8, 2, model.Apply}, 10: {0, 0, model.Nothing}, 11: {0, 0, model.Resnapshot}} {
		// Signals are answered at once, whatever the wait.
		wait := ""
		if want.verdict != model.Nothing {
			wait = "&wait_ms=25000"
		}
		var p model.Page[model.TenantChange]
		r.ok(200, "GET", fmt.Sprintf("/v1/tenants/changes?since=%d%s", since, wait), view, nil).into(t, &p)
		verdict, _, _ := model.Judge(p, since)
		if len(p.Items) != want.n || p.NextSeq != 10 || verdict != want.verdict || want.n > 0 && int(p.Items[0].Seq) != want.first {
			t.Errorf("since %d: verdict %v, %+v", since, verdict, p)
		}
	}
}

// waiting sends a reader that waits, and answers where its page will come.
func (r *rig) waiting(ctx context.Context, path, token string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		a, err := r.try(ctx, "GET", path, token, nil)
		if err == nil {
			got <- a
		}
		close(got)
	}()
	return got
}

// inflight waits until the instance serves that many requests.
func (r *rig) inflight(n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d requests in flight", n), func() bool {
		return r.metric("felix_inflight_requests ") == fmt.Sprint(n)
	})
}

// metric is the value of the first metric whose line begins so.
func (r *rig) metric(name string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", "http://"+r.server.MetricsAddr()+"/metrics", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := r.send(req)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(a.body), "\n") {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func receive(t *testing.T, got <-chan answer) answer {
	t.Helper()
	select {
	case a, ok := <-got:
		if !ok {
			t.Fatal("the request failed")
		}
		return a
	case <-time.After(patience):
		t.Fatal("no answer")
		return answer{}
	}
}

// Writers of every feed wake its readers, all of them, with the change.
func TestReadersWakeOnAWrite(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin, op, view := r.admin("t1"), r.operator(), r.token("ops", "node.view:cluster:*")
	r.ok(200, "POST", "/v1/nodes", op, nodeBody("n1", nil))
	for kind, write := range map[string]func(){
		"tenants": func() { r.ok(201, "POST", "/v1/tenants", op, map[string]string{"tenant_id": "t2", "display_name": ""}) },
		"namespaces": func() {
			r.ok(201, "POST", "/v1/tenants/t1/namespaces", admin, map[string]string{"namespace": "n2", "display_name": ""})
		},
		"streams": func() { r.ok(201, "POST", ns+"/streams", admin, streamBody("s1", nil)) },
		"caches":  func() { r.ok(201, "POST", ns+"/caches", admin, `{"cache":"c1","display_name":""}`) },
		"shard-assignments": func() {
			r.ok(201, "POST", ns+"/streams", admin, streamBody("s2", map[string]any{"shards": 1}))
		},
	} {
		// Placement of what another case made must have settled.
		var snap page
		eventually(t, "everything is placed", func() bool {
			streams, err := r.store.StreamsSnapshot(t.Context())
			caches, err2 := r.store.CachesSnapshot(t.Context())
			shards := len(caches.Items)
			for _, s := range streams.Items {
				shards += int(s.Shards)
			}
			all, err3 := r.store.Assignments(t.Context())
			return err == nil && err2 == nil && err3 == nil && len(all) == shards
		})
		r.ok(200, "GET", "/v1/"+kind+"/snapshot", view, nil).into(t, &snap)
		const readers = 5
		var got []<-chan answer
		for range readers {
			got = append(got, r.waiting(t.Context(), fmt.Sprintf("/v1/%s/changes?since=%d&wait_ms=25000", kind, *snap.NextSeq), view))
		}
		r.inflight(readers)
		write()
		for _, g := range got {
			var p page
			if receive(t, g).into(t, &p); len(p.Items) == 0 || p.Items[0]["seq"] != float64(*snap.NextSeq) {
				t.Errorf("%s: woken with %+v", kind, p)
			}
		}
		r.inflight(0)
	}
}

// A wait ends with the empty page, is bounded, and leaves with its reader.
func TestWaitsEnd(t *testing.T) {
	r := newRig(t)
	view := r.token("ops", "node.view:cluster:*")
	var p page
	for _, wait := range []string{"", "&wait_ms=0", "&wait_ms=1", "&wait_ms=80"} {
		r.ok(200, "GET", "/v1/shard-assignments/changes?since=0"+wait, view, nil).into(t, &p)
		if len(p.Items) != 0 || p.NextSeq == nil || *p.NextSeq != 0 {
			t.Fatalf("%s: %+v", wait, p)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.waiting(ctx, "/v1/shard-assignments/changes?since=0&wait_ms=99999999999", view)
	r.inflight(1)
	cancel()
	r.inflight(0)
}

// An instance that drains answers its waiting readers, and later ones at once,
// while it still serves.
func TestDrainAnswersReaders(t *testing.T) {
	r := newRig(t, func(o *controlplane.Options) { o.ShutdownPredrain = time.Hour })
	view := r.token("ops", "node.view:cluster:*")
	var got []<-chan answer
	for range 3 {
		got = append(got, r.waiting(t.Context(), "/v1/shard-assignments/changes?since=0&wait_ms=25000", view))
	}
	r.inflight(3)
	ended := make(chan error, 1)
	go func() { ended <- r.server.Shutdown(context.Background()) }()
	for _, g := range got {
		if a := receive(t, g); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	r.want(503, "not_ready", "GET", "/v1/system/ready", "", nil)
	r.want(503, "not_ready", "GET", "/v1/system/health", "", nil)
	r.ok(200, "GET", "/v1/system/live", "", nil)
	r.ok(200, "GET", "/v1/shard-assignments/changes?since=0&wait_ms=25000", view, nil)
	for path, want := range map[string]string{"/ready": "draining", "/live": "ok"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+r.server.MetricsAddr()+path, nil)
		if a, err := r.send(req); err != nil || string(a.body) != want {
			t.Errorf("%s: %s %v", path, a.body, err)
		}
	}
	if err := r.server.Shutdown(context.Background()); err != nil { // the second call ends the predrain
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := r.try(t.Context(), "GET", "/v1/system/live", "", nil); err == nil {
		t.Error("still serving")
	}
}
