package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
)

func TestIssuers(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	p := idp.Start(t)
	admin := r.admin("t1")
	const base = "/v1/tenants/t1/idp-issuers"
	r.want(400, "validation_error", "POST", base, admin, `{"audiences":["a"]}`)
	r.want(403, "forbidden", "POST", base, r.token("t1", "ns.manage:namespace:t1/*"), issuerOf(p))
	r.ok(204, "POST", base, admin, issuerOf(p))
	stored, err := r.store.Issuers(t.Context(), "t1")
	if err != nil || len(stored) != 1 || stored[0].ClaimMappings.SubjectClaim != "sub" {
		t.Fatalf("%+v %v", stored, err)
	}
	one := base + "/" + url.PathEscape(p.Issuer())
	r.want(403, "forbidden", "DELETE", one, admin, nil) // needs the cluster as well
	both := r.token("t1", "tenant.manage:tenant:t1", "tenant.manage:cluster:*")
	r.want(404, "not_found", "DELETE", base+"/https%3A%2F%2Fnowhere", both, nil)
	r.ok(204, "DELETE", one, both, nil)
	r.want(404, "not_found", "DELETE", one, both, nil)
}

func TestRules(t *testing.T) {
	r := newRig(t)
	r.namespace("t1")
	admin := r.admin("t1")
	const policies, groupings = "/v1/tenants/t1/rbac/policies", "/v1/tenants/t1/rbac/groupings"
	rule := func(subject, object, action string) map[string]string {
		return map[string]string{"subject": subject, "object": object, "action": action}
	}
	for i := range 5 {
		r.ok(204, "POST", policies, admin, rule(fmt.Sprintf("role:r%d", i), "stream:t1/ns/*", "stream.publish"))
	}
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "stream:t1/ns", "stream.publish"))
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "stream:t1/ns/*", "fly"))
	// The pair that would let the admin of a namespace have the tenant.
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "namespace:t1/ns", "tenant.manage"))
	some := r.token("t1", "rbac.view:namespace:t1/other", "rbac.policy.manage:namespace:t1/other")
	r.want(403, "forbidden", "POST", policies, some, rule("role:r", "stream:t1/ns/*", "stream.publish"))
	r.want(403, "forbidden", "POST", policies, admin, rule("role:r", "cluster:*", "node.view"))
	var bare []model.Policy
	if r.ok(200, "GET", policies, admin, nil).into(t, &bare); len(bare) != 5 {
		t.Fatalf("%+v", bare)
	}
	if a := r.ok(200, "GET", policies, some, nil); strings.TrimSpace(string(a.body)) != "[]" {
		t.Fatalf("%s", a.body)
	}
	var part struct {
		Items      []model.Policy
		NextCursor string `json:"next_cursor"`
	}
	if r.ok(200, "GET", policies+"?limit=3", admin, nil).into(t, &part); len(part.Items) != 3 || part.NextCursor == "" {
		t.Fatalf("%+v", part)
	}
	rest := part
	rest.NextCursor = ""
	if r.ok(200, "GET", policies+"?cursor="+part.NextCursor, admin, nil).into(t, &rest); len(rest.Items) != 2 || rest.NextCursor != "" {
		t.Fatalf("%+v", rest)
	}
	r.ok(204, "POST", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.want(403, "forbidden", "POST", groupings, admin, `{"user":"u","role":"role:none"}`)
	r.want(403, "forbidden", "POST", groupings, r.token("t1", "rbac.policy.manage:tenant:t1"), `{"user":"u","role":"role:r0"}`)
	if a := r.ok(200, "GET", groupings, admin, nil); strings.TrimSpace(string(a.body)) != `[{"user":"u","role":"role:r0"}]` {
		t.Fatalf("%s", a.body)
	}
	r.ok(204, "DELETE", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.want(404, "not_found", "DELETE", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.ok(204, "DELETE", policies, admin, rule("role:r0", "stream:t1/ns/*", "stream.publish"))
	r.want(404, "not_found", "DELETE", policies, admin, rule("role:r0", "stream:t1/ns/*", "stream.publish"))
	r.want(403, "forbidden", "GET", policies, r.token("t1", "tenant.manage:tenant:t1"), nil)
}

func TestSigningKeys(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	admin := r.admin("t1")
	const base = "/v1/tenants/t1/signing-keys"
	type view struct {
		Current   string
		Verifying []string
	}
	var before, staged, active view
	r.ok(200, "GET", base, admin, nil).into(t, &before)
	if r.ok(201, "POST", base, admin, nil).into(t, &staged); staged.Current != before.Current || len(staged.Verifying) != 2 {
		t.Fatalf("%+v", staged)
	}
	fresh := staged.Verifying[1]
	r.want(404, "not_found", "POST", base+"/nokey/activate", admin, nil)
	if r.ok(200, "POST", base+"/"+fresh+"/activate", admin, nil).into(t, &active); active.Current != fresh {
		t.Fatalf("%+v", active)
	}
	r.want(409, "conflict", "DELETE", base+"/"+fresh, admin, nil)
	r.ok(200, "GET", base, admin, nil) // the key before still verifies
	r.ok(200, "DELETE", base+"/"+before.Current, admin, nil)
	r.want(403, "forbidden", "GET", base, r.token("ops", "tenant.manage:cluster:*"), nil)
}
