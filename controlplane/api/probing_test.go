package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/auth"
)

// Who is not let in does not learn what exists.
func TestProbing(t *testing.T) {
	r := newRig(t)
	r.namespace("t1")
	now := time.Now()
	claims := auth.Claims{
		Tenant: "t1", Subject: "s", Permissions: []string{"tenant.manage:tenant:t1", "ns.manage:namespace:t1/*"}, Audience: auth.AudienceControlPlane,
		IssuedAt: now, Expires: now.Add(time.Hour),
	}
	change := func(f func(*auth.Claims)) string {
		c := claims
		f(&c)
		return r.mint(c)
	}
	good := r.mint(claims)
	header, rest, _ := strings.Cut(good, ".")
	for name, token := range map[string]string{
		"none": "", "no JWT": "abc", "two parts": "a.b", "no signature": header + "." + strings.Split(rest, ".")[0] + ".",
		"signed by none": "eyJhbGciOiJub25lIn0." + strings.Split(rest, ".")[0] + ".", "expired": change(func(c *auth.Claims) { c.IssuedAt, c.Expires = now.Add(-2*time.Hour), now.Add(-time.Hour) }),
		"for brokers": change(func(c *auth.Claims) { c.Audience = auth.AudienceBroker }),
	} {
		for _, path := range []string{"/v1/tenants/t1/namespaces", "/v1/tenants/nowhere/namespaces", "/v1/tenants", "/v1/nodes/n1", "/v1/tenants/t1/namespaces/ns/streams/s", "/v1/tenants/nowhere/rbac/policies"} {
			a := r.do("GET", path, token, nil)
			if a.status != 401 {
				t.Errorf("%s: %s: %d %s", name, path, a.status, a.body)
			}
		}
	}
	// A good token of one tenant says nothing about another, there or not.
	for _, path := range []string{"/v1/tenants/ops/namespaces", "/v1/tenants/nowhere/namespaces"} {
		if a := r.do("GET", path, good, nil); a.status != 401 && a.status != 403 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, prefix := range []string{"bearer ", "Basic ", "", "Bearer"} {
		req, _ := newRequest(t, "GET", r.base+"/v1/tenants/t1/namespaces", nil)
		req.Header.Set("Authorization", prefix+good)
		if a, err := r.send(req); err != nil || a.status != 401 {
			t.Errorf("prefix %q: %d %v", prefix, a.status, err)
		}
	}
	if r.metric(`felix_controlplane_auth_rejected_total{reason="missing_token"}`) == "" {
		t.Error("refusals are not counted")
	}
}

func newRequest(t testing.TB, method, target string, body any) (*http.Request, error) {
	t.Helper()
	var text string
	switch b := body.(type) {
	case nil:
	case string:
		text = b
	default:
		text = marshal(t, b)
	}
	return http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(text))
}
