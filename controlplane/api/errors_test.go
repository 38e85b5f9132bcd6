package api_test

import (
	"net/http"
	"strings"
	"testing"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// Everything that does not fit is answered in one form, with one status.
func TestMalformedRequests(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	for _, c := range []struct{ body, names string }{
		{``, "body"}, {`null`, "body"}, {`[]`, "body"}, {`7`, "body"}, {`{`, "body"}, {`{"tenant_id":"a","display_name":"b"} {}`, "body"},
		{`{"tenant_id":7,"display_name":"x"}`, "tenant_id"}, {`{"display_name":"x"}`, "tenant_id"}, {`{"tenant_id":null,"display_name":"x"}`, "tenant_id"},
		{`{"tenant_id":"a","display_name":"x","displayname":"x"}`, "displayname"}, {`{"tenant_id":"a","display_name":["x"]}`, "display_name"},
		{strings.Repeat("[", 100_000), "body"},
	} {
		a := r.want(400, "validation_error", "POST", "/v1/tenants", op, c.body)
		if f := a.failure(t); !contains(f.Message, c.names) {
			t.Errorf("%.60q: the message does not name %s: %s", c.body, c.names, f.Message)
		}
	}
}

func TestContentTypes(t *testing.T) {
	r := newRig(t)
	for kind, status := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "": 201,
		"text/plain": 400, "application/x-www-form-urlencoded": 400, "application/cbor": 400, "json": 400, ";": 400, "application/problem+json": 400,
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.base+"/v1/tenants", strings.NewReader(`{"tenant_id":"t`+tenantSuffix(kind)+`","display_name":""}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.operator())
		req.Header.Set("Content-Type", kind)
		if kind == "" {
			req.Header["Content-Type"] = nil
		}
		a, err := r.send(req)
		if err != nil || a.status != status {
			t.Errorf("%q: %d %v %s", kind, a.status, err, a.body)
		}
		if status == 400 && a.failure(t).Code != "validation_error" {
			t.Errorf("%q: %s", kind, a.body)
		}
	}
}

func tenantSuffix(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, s)
}

// A body up to the bound is read whole, one beyond it refused.
func TestBodyBound(t *testing.T) {
	r := newRig(t)
	const bound = 2 << 20
	fill := func(size int) string {
		head, tail := `{"tenant_id":"t1","display_name":"`, `"}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	a := r.want(400, "validation_error", "POST", "/v1/tenants", r.operator(), fill(bound))
	if f := a.failure(t); !contains(f.Message, "display_name") {
		t.Fatalf("a body at the bound: %s", f.Message)
	}
	r.want(413, "too_large", "POST", "/v1/tenants", r.operator(), fill(bound+1))
	// Who has not said who he is gets less.
	r.want(413, "too_large", "POST", "/v1/tenants/t1/token/refresh", "", `{"refresh_token":"`+strings.Repeat("x", 65<<10)+`"}`)
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/tenants", "/v1/tenants/", "/v1//tenants", "/v1/./tenants", "/v1/nodes/changes/", "/metrics", "/internal/bootstrap/tenants/t/initialize", "/openapi.yaml"} {
		r.want(404, "not_found", "GET", path, r.operator(), nil)
	}
	for path, method := range map[string]string{"/v1/tenants": "PUT", "/v1/system/info": "POST", "/v1/nodes/n/drain": "GET", "/docs": "DELETE"} {
		a := r.want(405, "method_not_allowed", method, path, r.operator(), nil)
		if a.header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", method, path)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	r := newRig(t)
	for given, kept := range map[string]bool{
		"abc-123_4.5": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "a\tb": false, "ä": false, `"`: false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.base+"/v1/nowhere", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Request-Id"] = []string{given}
		a, err := r.send(req)
		if err != nil {
			t.Fatal(err)
		}
		f := a.failure(t)
		if f.RequestID == "" || a.header.Get("X-Request-Id") != f.RequestID || (f.RequestID == given) != kept {
			t.Errorf("%q became %q", given, f.RequestID)
		}
	}
	first, second := r.do("GET", "/v1/system/live", "", nil), r.do("GET", "/v1/system/live", "", nil)
	if a, b := first.header.Get("X-Request-Id"), second.header.Get("X-Request-Id"); a == "" || a == b {
		t.Errorf("ids %q and %q", a, b)
	}
}

func TestSystem(t *testing.T) {
	r := newRig(t)
	var info struct {
		RegionID   string `json:"region_id"`
		APIVersion string `json:"api_version"`
		Features   map[string]bool
	}
	r.ok(200, "GET", "/v1/system/info", "", nil).into(t, &info)
	if info.RegionID != "local" || info.APIVersion != "v1" || info.Features["durable_storage"] || info.Features["tiered_storage"] || !info.Features["bridges"] {
		t.Fatalf("%+v", info)
	}
	for _, path := range []string{"live", "ready", "health"} {
		if a := r.ok(200, "GET", "/v1/system/"+path, "", nil); strings.TrimSpace(string(a.body)) != `{"status":"ok"}` {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if a := r.ok(200, "GET", "/v1/regions", "", nil); strings.TrimSpace(string(a.body)) != `{"items":[{"region_id":"local","display_name":"Local Region"}]}` {
		t.Errorf("regions: %s", a.body)
	}
	r.ok(200, "GET", "/v1/regions/local", "", nil)
	r.want(404, "not_found", "GET", "/v1/regions/moon", "", nil)
}

// No store is asked to keep what one of them cannot.
func TestTextsNoStoreCanKeep(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	move := func(stream string) string { // which nothing but the store looks at
		return `{"tenant_id":"t1","namespace":"ns","stream":"` + stream + `","shard":0,"destination":"n1"}`
	}
	for _, stream := range []string{`s\u0000`, `\\\u0000`, "s\xff"} {
		r.want(400, "validation_error", "POST", "/v1/shard-moves", op, move(stream))
	}
	r.want(404, "unknown_shard", "POST", "/v1/shard-moves", op, move(`\\u0000`)) // a backslash and five letters
	for _, path := range []string{"/v1/nodes/%00", "/v1/nodes/a%FF", "/v1/tenants/%00/namespaces", "/v1/bridges/a/%00"} {
		method := "GET"
		if strings.Contains(path, "bridges") {
			method = "DELETE"
		}
		r.want(400, "validation_error", method, path, op, nil)
	}
}
