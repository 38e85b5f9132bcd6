package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// streamBody is a body that creates a stream, with fields put in place of its
// own; nil takes one away.
func streamBody(name string, change map[string]any) map[string]any {
	b := map[string]any{
		"stream": name, "kind": "Stream", "shards": 2, "retention": map[string]any{"max_age_seconds": 3600, "max_size_bytes": nil},
		"consistency": "Leader", "delivery": "AtLeastOnce", "durable": true,
	}
	for field, value := range change {
		if value == nil {
			delete(b, field)
			continue
		}
		b[field] = value
	}
	return b
}

// namespace makes a tenant with one namespace and answers its path.
func (r *rig) namespace(tenant string) string {
	r.t.Helper()
	r.tenant(tenant)
	r.ok(201, "POST", "/v1/tenants/"+tenant+"/namespaces", r.admin(tenant), map[string]string{"namespace": "ns", "display_name": "N"})
	return "/v1/tenants/" + tenant + "/namespaces/ns"
}

func TestTenants(t *testing.T) {
	r := newRig(t)
	op := r.operator()
	made := r.ok(201, "POST", "/v1/tenants", op, map[string]string{"tenant_id": "t1", "display_name": "One"})
	var tenant model.Tenant
	if made.into(t, &tenant); tenant != (model.Tenant{TenantID: "t1", DisplayName: "One"}) {
		t.Fatalf("created %+v", tenant)
	}
	r.want(409, "already_exists", "POST", "/v1/tenants", op, map[string]string{"tenant_id": "t1", "display_name": "Again"})
	var keys struct {
		Keys []struct {
			Kid string `json:"kid"`
		} `json:"keys"`
	}
	r.ok(200, "GET", "/v1/tenants/t1/.well-known/jwks.json", "", nil).into(t, &keys)
	if len(keys.Keys) != 1 {
		t.Fatalf("a new tenant has %d keys, want 1", len(keys.Keys))
	}
	for _, bad := range []string{"", "a/b", "a:b", "a*", "a#", "a b", "..", string(make([]byte, 254))} {
		r.want(400, "validation_error", "POST", "/v1/tenants", op, map[string]string{"tenant_id": bad, "display_name": "x"})
	}
	r.want(400, "validation_error", "POST", "/v1/tenants", op, map[string]string{"tenant_id": "t2", "display_name": "a\nb"})
	r.ok(204, "DELETE", "/v1/tenants/t1", op, nil)
	r.want(404, "not_found", "DELETE", "/v1/tenants/t1", op, nil)
	r.want(404, "not_found", "GET", "/v1/tenants/t1/.well-known/jwks.json", "", nil)
}

// A tenant that is there without a key, from before it was made with one, keeps
// that way when it is created again, and gets one when it is first needed.
func TestTenantWithoutAKeyIsHealed(t *testing.T) {
	r := newRig(t)
	if err := r.store.CreateTenant(t.Context(), model.Tenant{TenantID: "half"}); err != nil {
		t.Fatal(err)
	}
	r.want(409, "already_exists", "POST", "/v1/tenants", r.operator(), map[string]string{"tenant_id": "half", "display_name": ""})
	keys := func() int {
		keys, err := r.store.SigningKeys(t.Context(), "half")
		if err != nil {
			t.Fatal(err)
		}
		return len(keys)
	}
	if n := keys(); n != 0 {
		t.Fatalf("creating it again gave it %d keys", n)
	}
	r.ok(200, "GET", "/v1/tenants/half/.well-known/jwks.json", "", nil)
	if n := keys(); n != 1 {
		t.Fatalf("%d keys", n)
	}
}

func TestNamespaces(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	admin := r.admin("t1")
	const base = "/v1/tenants/t1/namespaces"
	for _, name := range []string{"b", "a", "c"} {
		r.ok(201, "POST", base, admin, map[string]string{"namespace": name, "display_name": name})
	}
	r.want(409, "already_exists", "POST", base, admin, map[string]string{"namespace": "a", "display_name": ""})
	r.want(400, "validation_error", "POST", base, admin, map[string]string{"namespace": "a/b", "display_name": ""})
	some := r.token("t1", "ns.manage:namespace:t1/a")
	var list struct{ Items []model.Namespace }
	if r.ok(200, "GET", base, some, nil).into(t, &list); len(list.Items) != 1 || list.Items[0].Namespace != "a" {
		t.Fatalf("a caller with one namespace sees %+v", list.Items)
	}
	r.want(403, "forbidden", "POST", base, some, map[string]string{"namespace": "d", "display_name": ""})
	r.want(403, "forbidden", "DELETE", base+"/b", some, nil)
	r.want(403, "forbidden", "DELETE", base+"/nowhere", some, nil)
	r.want(403, "forbidden", "GET", base, r.token("t1", "stream.manage:stream:t1/a/*"), nil)
	r.ok(204, "DELETE", base+"/a", some, nil)
	r.want(404, "not_found", "DELETE", base+"/a", admin, nil)
}

func TestStreams(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin := r.admin("t1")
	base := ns + "/streams"
	var s model.Stream
	r.ok(201, "POST", base, admin, streamBody("orders", map[string]any{"region": "eu", "routing": "jump_hash", "replication_factor": 3})).into(t, &s)
	if s.UID == "" || s.Shards != 2 || s.ReplicationFactor != 3 || s.Region != "eu" || s.Routing != model.JumpHash || !s.Durable ||
		s.Retention.MaxAgeSeconds == nil || *s.Retention.MaxAgeSeconds != 3600 || s.Retention.MaxSizeBytes != nil {
		t.Fatalf("created %+v", s)
	}
	var got model.Stream
	if r.ok(200, "GET", base+"/orders", admin, nil).into(t, &got); fmt.Sprint(got) == "" || got.UID != s.UID {
		t.Fatalf("got %+v, want %+v", got, s)
	}
	r.want(409, "conflict", "POST", base, admin, streamBody("orders", nil))
	r.want(404, "not_found", "POST", "/v1/tenants/t1/namespaces/other/streams", admin, streamBody("orders", nil))
	r.want(404, "not_found", "GET", base+"/other", admin, nil)

	var other model.Stream
	r.ok(201, "POST", base, admin, streamBody("plain", map[string]any{"routing": "modulo", "replication_factor": 0})).into(t, &other)
	if other.UID == s.UID || other.Routing != model.Modulo || other.ReplicationFactor != 1 {
		t.Fatalf("created %+v", other)
	}

	// A patch replaces both bounds of the retention and leaves the rest.
	var patched model.Stream
	r.ok(200, "PATCH", base+"/orders", admin, `{"retention":{"max_size_bytes":1000}}`).into(t, &patched)
	if patched.Retention.MaxAgeSeconds != nil || *patched.Retention.MaxSizeBytes != 1000 || patched.Consistency != model.Leader || patched.UID != s.UID {
		t.Fatalf("patched %+v", patched)
	}
	r.ok(200, "PATCH", base+"/orders", admin, `{"consistency":"Quorum","delivery":"AtMostOnce","durable":false}`).into(t, &patched)
	if patched.Consistency != model.Quorum || patched.Delivery != model.AtMostOnce || patched.Durable || *patched.Retention.MaxSizeBytes != 1000 {
		t.Fatalf("patched %+v", patched)
	}
	r.ok(200, "PATCH", base+"/orders", admin, `{}`)
	for _, fixed := range []string{`{"shards":4}`, `{"kind":"Queue"}`, `{"replication_factor":2}`, `{"region":"us"}`, `{"routing":"modulo"}`, `{"retention":{"max_size_bytes":0}}`} {
		r.want(400, "validation_error", "PATCH", base+"/orders", admin, fixed)
	}
	r.want(404, "not_found", "PATCH", base+"/other", admin, `{}`)
	r.ok(204, "DELETE", base+"/orders", admin, nil)
	r.want(404, "not_found", "DELETE", base+"/orders", admin, nil)
}

// What a stream cannot be is refused with the name of the field.
func TestStreamFields(t *testing.T) {
	r := newRig(t)
	base := r.namespace("t1") + "/streams"
	admin := r.admin("t1")
	for _, c := range []struct {
		field string
		value any
	}{
		{"stream", "a b"}, {"stream", ""}, {"stream", 7}, {"kind", "stream"}, {"kind", nil}, {"shards", 0}, {"shards", 1025}, {"shards", -1},
		{"shards", 1.5}, {"shards", "2"}, {"shards", nil}, {"replication_factor", 33}, {"replication_factor", -1},
		{"retention", nil}, {"retention", map[string]any{"max_age_seconds": 0}}, {"retention", map[string]any{"max_size_bytes": 0}},
		{"retention", map[string]any{"max_size": 1}}, {"retention", 5},
		{"consistency", "quorum"}, {"consistency", nil}, {"delivery", "ExactlyOnce"}, {"delivery", nil}, {"durable", "yes"}, {"durable", nil},
		{"region", " "}, {"region", ""}, {"routing", "hash"}, {"durabel", true},
	} {
		a := r.want(400, "validation_error", "POST", base, admin, streamBody("s", map[string]any{c.field: c.value}))
		if f := a.failure(t); !contains(f.Message, c.field) {
			t.Errorf("%s = %v: the message does not name the field: %s", c.field, c.value, f.Message)
		}
	}
	r.ok(201, "POST", base, admin, streamBody("s", map[string]any{"shards": 1024}))
}

func TestStreamScopes(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	base := ns + "/streams"
	admin := r.admin("t1")
	for _, name := range []string{"a", "b", "c"} {
		r.ok(201, "POST", base, admin, streamBody(name, nil))
	}
	some := r.token("t1", "stream.manage:stream:t1/ns/a", "stream.manage:stream:t1/ns/d")
	var list struct{ Items []model.Stream }
	if r.ok(200, "GET", base, some, nil).into(t, &list); len(list.Items) != 1 || list.Items[0].Stream != "a" {
		t.Fatalf("sees %+v", list.Items)
	}
	r.want(403, "forbidden", "GET", base+"/b", some, nil)
	r.want(403, "forbidden", "GET", base+"/nowhere", some, nil)
	r.want(404, "not_found", "GET", base+"/d", some, nil)
	r.want(403, "forbidden", "POST", base, some, streamBody("e", nil))
	r.want(403, "forbidden", "PATCH", base+"/b", some, `{}`)
	r.want(403, "forbidden", "DELETE", base+"/b", some, nil)
	r.ok(201, "POST", base, some, streamBody("d", nil))
	// Where the caller has nothing, he does not learn whether there is a namespace.
	r.want(403, "forbidden", "GET", "/v1/tenants/t1/namespaces/other/streams", some, nil)
	r.want(403, "forbidden", "GET", base, r.token("t1", "cache.manage:cache:t1/*/*", "stream.publish:stream:t1/*/*"), nil)
	// The cluster contains nothing of a tenant.
	r.want(403, "forbidden", "GET", base, r.operator(), nil)
}

func TestCaches(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	base := ns + "/caches"
	admin := r.admin("t1")
	var c model.Cache
	r.ok(201, "POST", base, admin, `{"cache":"c","display_name":"C"}`).into(t, &c)
	if c.Shards != 1 || c.ReplicationFactor != 1 || c.Consistency != model.Leader || c.UID == "" {
		t.Fatalf("created %+v", c)
	}
	r.ok(201, "POST", base, admin, `{"cache":"d","display_name":"D","shards":0,"replication_factor":3,"consistency":"Quorum"}`).into(t, &c)
	if c.Shards != 1 || c.ReplicationFactor != 3 || c.Consistency != model.Quorum {
		t.Fatalf("created %+v", c)
	}
	r.want(409, "conflict", "POST", base, admin, `{"cache":"c","display_name":""}`)
	r.want(400, "validation_error", "POST", base, admin, `{"cache":"e","display_name":"","shards":2000}`)
	r.want(400, "validation_error", "POST", base, admin, `{"cache":"e","display_name":"","region":"eu"}`)
	r.ok(200, "PATCH", base+"/c", admin, `{"display_name":"new"}`).into(t, &c)
	if c.DisplayName != "new" {
		t.Fatalf("patched %+v", c)
	}
	r.want(400, "validation_error", "PATCH", base+"/c", admin, `{"shards":2}`)
	var list struct{ Items []model.Cache }
	if r.ok(200, "GET", base, r.token("t1", "cache.manage:cache:t1/ns/d"), nil).into(t, &list); len(list.Items) != 1 || list.Items[0].Cache != "d" {
		t.Fatalf("sees %+v", list.Items)
	}
	r.ok(200, "GET", base+"/c", admin, nil)
	r.ok(204, "DELETE", base+"/c", admin, nil)
	r.want(404, "not_found", "GET", base+"/c", admin, nil)
	r.want(404, "not_found", "PATCH", base+"/c", admin, `{}`)
}

func TestResourcesAreMadeTogether(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin := r.admin("t1")
	both := map[string]any{
		"streams": []any{streamBody("a", nil), streamBody("b", nil)}, "caches": []any{map[string]any{"cache": "a", "display_name": ""}},
	}
	var made struct {
		Streams []model.Stream
		Caches  []model.Cache
	}
	if r.ok(201, "POST", ns+"/resources", admin, both).into(t, &made); len(made.Streams) != 2 || len(made.Caches) != 1 {
		t.Fatalf("made %+v", made)
	}
	half := map[string]any{"streams": []any{streamBody("c", nil), streamBody("a", nil)}}
	r.want(409, "conflict", "POST", ns+"/resources", admin, half)
	r.want(404, "not_found", "GET", ns+"/streams/c", admin, nil)
	r.want(400, "validation_error", "POST", ns+"/resources", admin, `{}`)
	only := r.token("t1", "stream.manage:stream:t1/ns/*")
	r.want(403, "forbidden", "POST", ns+"/resources", only, map[string]any{
		"streams": []any{streamBody("d", nil)}, "caches": []any{map[string]any{"cache": "d", "display_name": ""}},
	})
	r.want(404, "not_found", "GET", ns+"/streams/d", admin, nil)
	r.ok(201, "POST", ns+"/resources", only, map[string]any{"streams": []any{streamBody("d", nil)}})
}

// Pages cut a list without losing or repeating anything, whatever their size.
func TestPages(t *testing.T) {
	r := newRig(t)
	ns := r.namespace("t1")
	admin := r.admin("t1")
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("s%02d", i)
		want = append(want, name)
		r.ok(201, "POST", ns+"/streams", admin, streamBody(name, nil))
	}
	for _, limit := range []string{"1", "7", "24", "25", "26", "1000", "5000", "0", "many"} {
		var got []string
		cursor, pages := "", 0
		for {
			var page struct {
				Items      []model.Stream `json:"items"`
				NextCursor *string        `json:"next_cursor"`
			}
			r.ok(200, "GET", ns+"/streams?limit="+limit+"&cursor="+cursor, admin, nil).into(t, &page)
			for _, s := range page.Items {
				got = append(got, s.Stream)
			}
			pages++
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if !slices.Equal(got, want) {
			t.Fatalf("limit %s: %v", limit, got)
		}
		if limit == "7" && pages != 4 {
			t.Fatalf("limit 7 took %d pages", pages)
		}
	}
	r.want(400, "validation_error", "GET", ns+"/streams?cursor=%21", admin, nil)
	if a := r.do(http.MethodGet, ns+"/streams", admin, nil); contains(string(a.body), "next_cursor") {
		t.Fatal("a whole list has a cursor")
	}
}
