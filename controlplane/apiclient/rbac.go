package apiclient

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
)

// PutIssuer makes a tenant trust an identity provider, or changes how (control
// plane 4.9).
func (c *Client) PutIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error {
	return c.post(ctx, path("v1", "tenants", tenant, "idp-issuers"), i, nil)
}

// DeleteIssuer ends that trust.
func (c *Client) DeleteIssuer(ctx context.Context, tenant, issuer string) error {
	return c.remove(ctx, path("v1", "tenants", tenant, "idp-issuers", issuer), nil, nil, nil)
}

// Policies that the caller may see.
func (c *Client) Policies(ctx context.Context, tenant string) ([]model.Policy, error) {
	return list[model.Policy](ctx, c, policiesPath(tenant), nil)
}

// AddPolicy lets a subject do something; a rule that is there stays.
func (c *Client) AddPolicy(ctx context.Context, tenant string, p model.Policy) error {
	return c.post(ctx, policiesPath(tenant), p, nil)
}

// RemovePolicy takes a rule away.
func (c *Client) RemovePolicy(ctx context.Context, tenant string, p model.Policy) error {
	return c.remove(ctx, policiesPath(tenant), nil, p, nil)
}

// Groupings that the caller may see.
func (c *Client) Groupings(ctx context.Context, tenant string) ([]model.Grouping, error) {
	return list[model.Grouping](ctx, c, groupingsPath(tenant), nil)
}

// AddGrouping gives a user a role; one that is there stays.
func (c *Client) AddGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return c.post(ctx, groupingsPath(tenant), g, nil)
}

// RemoveGrouping takes a role from a user.
func (c *Client) RemoveGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return c.remove(ctx, groupingsPath(tenant), nil, g, nil)
}

func policiesPath(tenant string) string  { return path("v1", "tenants", tenant, "rbac", "policies") }
func groupingsPath(tenant string) string { return path("v1", "tenants", tenant, "rbac", "groupings") }

// RevokeRefreshTokens ends all sessions of a principal and counts them.
func (c *Client) RevokeRefreshTokens(ctx context.Context, tenant, principal string) (revoked int, err error) {
	body := struct {
		PrincipalID string `json:"principal_id"`
	}{principal}
	var got struct {
		Revoked int `json:"revoked"`
	}
	err = c.post(ctx, path("v1", "tenants", tenant, "refresh-tokens", "revoke"), body, &got)
	return got.Revoked, err
}

// Keys are the ids of a tenant's signing keys.
type Keys struct {
	Current   string   `json:"current"`
	Verifying []string `json:"verifying"`
}

// SigningKeys of a tenant (control plane 15.7).
func (c *Client) SigningKeys(ctx context.Context, tenant string) (Keys, error) {
	var k Keys
	err := c.get(ctx, keysPath(tenant), nil, &k)
	return k, err
}

// StageSigningKey adds a key that verifies and does not sign yet.
func (c *Client) StageSigningKey(ctx context.Context, tenant string) (Keys, error) {
	var k Keys
	err := c.create(ctx, keysPath(tenant), nil, &k)
	return k, err
}

// ActivateSigningKey makes a staged key the one that signs.
func (c *Client) ActivateSigningKey(ctx context.Context, tenant, kid string) (Keys, error) {
	var k Keys
	err := c.post(ctx, keysPath(tenant, kid, "activate"), nil, &k)
	return k, err
}

// RetireSigningKey forgets a key that does not sign.
func (c *Client) RetireSigningKey(ctx context.Context, tenant, kid string) (Keys, error) {
	var k Keys
	err := c.do(ctx, call{method: http.MethodDelete, path: keysPath(tenant, kid), into: &k})
	return k, err
}

func keysPath(tenant string, more ...string) string {
	return path(append([]string{"v1", "tenants", tenant, "signing-keys"}, more...)...)
}
