package memory

import (
	"context"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// What follows implements [store.Auth].

// of reads something of a tenant's identities.
func of[T any](m *Machine, tenant string, find func(*identities) T) (T, error) {
	return read(m, func(s *State) (T, error) {
		i, err := s.identities(tenant)
		if err != nil {
			var none T
			return none, err
		}
		return find(i), nil
	})
}

// Issuers lists those of a tenant.
func (m *Machine) Issuers(_ context.Context, tenant string) ([]model.IdpIssuer, error) {
	list, err := of(m, tenant, func(i *identities) []*model.IdpIssuer { return i.issuers })
	if err != nil {
		return nil, err
	}
	return cloned(list, cloneIssuer), nil
}

// PutIssuer adds or replaces one.
func (m *Machine) PutIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error {
	return m.tell(ctx, "put_issuer", issuerBody{tenant, i})
}

// DeleteIssuer removes one.
func (m *Machine) DeleteIssuer(ctx context.Context, tenant, issuer string) error {
	return m.tell(ctx, "delete_issuer", issuerName{tenant, issuer})
}

// Policies lists those of a tenant.
func (m *Machine) Policies(_ context.Context, tenant string) ([]model.Policy, error) {
	return of(m, tenant, func(i *identities) []model.Policy { return some(slices.Clone(i.policies)) })
}

// AddPolicy adds one.
func (m *Machine) AddPolicy(ctx context.Context, tenant string, p model.Policy) error {
	return m.tell(ctx, "add_policy", policyBody{tenant, p})
}

// RemovePolicy removes one.
func (m *Machine) RemovePolicy(ctx context.Context, tenant string, p model.Policy) error {
	return m.tell(ctx, "remove_policy", policyBody{tenant, p})
}

// Groupings lists those of a tenant.
func (m *Machine) Groupings(_ context.Context, tenant string) ([]model.Grouping, error) {
	return of(m, tenant, func(i *identities) []model.Grouping { return some(slices.Clone(i.groupings)) })
}

// AddGrouping adds one.
func (m *Machine) AddGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return m.tell(ctx, "add_grouping", groupingBody{tenant, g})
}

// RemoveGrouping removes one.
func (m *Machine) RemoveGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return m.tell(ctx, "remove_grouping", groupingBody{tenant, g})
}

// SigningKeys lists those of a tenant, the current one first.
func (m *Machine) SigningKeys(_ context.Context, tenant string) ([]model.SigningKey, error) {
	return read(m, func(s *State) ([]model.SigningKey, error) {
		if i, ok := s.auth[tenant]; ok {
			return i.listed(), nil
		}
		return []model.SigningKey{}, nil
	})
}

// EnsureSigningKey installs one where there is none.
func (m *Machine) EnsureSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error) {
	return ask[[]model.SigningKey](ctx, m, "ensure_signing_key", keyBody{tenant, key})
}

// StageSigningKey adds one that verifies.
func (m *Machine) StageSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error) {
	return ask[[]model.SigningKey](ctx, m, "stage_signing_key", keyBody{tenant, key})
}

// ActivateSigningKey makes one sign.
func (m *Machine) ActivateSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error) {
	return ask[[]model.SigningKey](ctx, m, "activate_signing_key", keyName{tenant, kid})
}

// RetireSigningKey forgets one.
func (m *Machine) RetireSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error) {
	return ask[[]model.SigningKey](ctx, m, "retire_signing_key", keyName{tenant, kid})
}

// Bootstrapped says whether the tenant was initialised.
func (m *Machine) Bootstrapped(_ context.Context, tenant string) (bool, error) {
	return of(m, tenant, func(i *identities) bool { return i.bootstrapped })
}

// BootstrapTenant initialises one, once, and makes it if it is not there.
func (m *Machine) BootstrapTenant(ctx context.Context, t model.Tenant, seed model.AuthSeed) ([]model.SigningKey, error) {
	return ask[[]model.SigningKey](ctx, m, "initialize_tenant", initializeBody{t, seed})
}

// InsertRefreshToken stores a new one.
func (m *Machine) InsertRefreshToken(ctx context.Context, t model.RefreshToken) error {
	return m.tell(ctx, "insert_refresh_token", t)
}

// TakeRefreshToken marks one used.
func (m *Machine) TakeRefreshToken(ctx context.Context, tenant, tokenID string) (model.RefreshToken, error) {
	return ask[model.RefreshToken](ctx, m, "take_refresh_token", tokenName{tenant, tokenID})
}

// RevokeFamily revokes what came of one exchange.
func (m *Machine) RevokeFamily(ctx context.Context, tenant, familyID string) (int, error) {
	return ask[int](ctx, m, "revoke_refresh_family", familyBody{tenant, familyID})
}

// RevokePrincipal revokes all of a principal.
func (m *Machine) RevokePrincipal(ctx context.Context, tenant, principalID string) (int, error) {
	return ask[int](ctx, m, "revoke_refresh_principal", principalBody{tenant, principalID})
}

// PurgeRefreshTokens forgets what has expired.
func (m *Machine) PurgeRefreshTokens(ctx context.Context, beforeSecs uint64) (int, error) {
	return ask[int](ctx, m, "purge_refresh_tokens", purgeBody{beforeSecs})
}
