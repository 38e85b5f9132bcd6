package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/rbac"
)

// InKey is the path of a signing key.
type InKey struct {
	InTenant
	KID string `path:"kid"`
}

type keysOut struct{ Body auth.KeyView }

// keyRoutes are those of control plane 4.9 about signing keys. Answers hold
// their ids alone.
func (s *surface) keyRoutes() {
	const tag, base = "keys", "/v1/tenants/{tenant_id}/signing-keys"
	allow := over(rbac.TenantManage, theTenant)
	answer := func(v auth.KeyView, err error) (*keysOut, error) { return &keysOut{v}, err }
	add(s, route{
		id: "list-signing-keys", method: http.MethodGet, path: base, tag: tag, summary: "List the ids of a tenant's keys",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *InTenant) (*keysOut, error) {
		return answer(s.o.Auth.KeyView(ctx, in.TenantID))
	})
	add(s, route{
		id: "stage-signing-key", method: http.MethodPost, path: base, tag: tag, summary: "Publish a new key that does not sign yet",
		about: "Brokers learn of it within an hour; then activate it.",
		who:   pathTenant, allow: allow, status: created, refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *InTenant) (*keysOut, error) {
		return answer(s.o.Auth.StageKey(ctx, in.TenantID))
	})
	add(s, route{
		id: "activate-signing-key", method: http.MethodPost, path: base + "/{kid}/activate", tag: tag, summary: "Sign with a key from now on",
		about: "The one before goes on verifying; retire it when the tokens it signed have ended.",
		who:   pathTenant, allow: allow, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *InKey) (*keysOut, error) {
		return answer(s.o.Auth.ActivateKey(ctx, in.TenantID, in.KID))
	})
	add(s, route{
		id: "retire-signing-key", method: http.MethodDelete, path: base + "/{kid}", tag: tag, summary: "Forget a key that does not sign",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *InKey) (*keysOut, error) {
		return answer(s.o.Auth.RetireKey(ctx, in.TenantID, in.KID))
	})
}
