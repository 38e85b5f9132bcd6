package store

import (
	"context"
	"crypto/ed25519"
	"errors"

	"github.com/felixlog/felix/controlplane/model"
)

// MaxSigningKeys is the most signing keys of a tenant.
const MaxSigningKeys = 32

// CheckFirstKey refuses a key that a tenant is to be made with and that could
// not serve: one without an id, which nobody could activate or retire, or one
// of another length than Ed25519 has.
func CheckFirstKey(k model.SigningKey) error {
	switch {
	case k.KID == "":
		return errors.New("the signing key has no id")
	case len(k.Seed) != ed25519.SeedSize || len(k.Public) != ed25519.PublicKeySize:
		return errors.New("the signing key does not have the length of an Ed25519 key")
	}
	return nil
}

// Auth is what identities rest on (control plane 15 to 17). All methods but
// SigningKeys and BootstrapTenant answer a tenant that is not there with a
// NotFoundError.
type Auth interface {
	// Issuers of a tenant; Put inserts or replaces; Delete of none is NotFound.
	Issuers(ctx context.Context, tenant string) ([]model.IdpIssuer, error)
	PutIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error
	DeleteIssuer(ctx context.Context, tenant, issuer string) error

	// Adding a rule that is there is nothing; removing one that is not is
	// NotFound.
	Policies(ctx context.Context, tenant string) ([]model.Policy, error)
	AddPolicy(ctx context.Context, tenant string, p model.Policy) error
	RemovePolicy(ctx context.Context, tenant string, p model.Policy) error
	Groupings(ctx context.Context, tenant string) ([]model.Grouping, error)
	AddGrouping(ctx context.Context, tenant string, g model.Grouping) error
	RemoveGrouping(ctx context.Context, tenant string, g model.Grouping) error

	// SigningKeys of a tenant, current first, then staged, then previous, each
	// newest first; empty for a tenant that is unknown or has none.
	SigningKeys(ctx context.Context, tenant string) ([]model.SigningKey, error)
	// EnsureSigningKey installs key as current unless the tenant has one.
	EnsureSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error)
	// Stage adds a key; TooManyKeys at MaxSigningKeys, Exists for a kid that is there.
	StageSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error)
	// Activate makes a key current and the current one previous. NotFound.
	ActivateSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error)
	// Retire forgets a key. NotFound, CurrentKey.
	RetireSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error)

	// Bootstrapped says whether the tenant was initialised. BootstrapTenant does
	// it in one step, exactly once: else Bootstrapped. A tenant that is not there
	// is made in the same step, one that is stays as it is. The keys are those
	// that the tenant has then.
	Bootstrapped(ctx context.Context, tenant string) (bool, error)
	BootstrapTenant(ctx context.Context, t model.Tenant, seed model.AuthSeed) ([]model.SigningKey, error)

	InsertRefreshToken(ctx context.Context, t model.RefreshToken) error
	// TakeRefreshToken marks a token used and answers it as it was before, so
	// that of two callers one sees it unused. An unknown one is NotFound.
	TakeRefreshToken(ctx context.Context, tenant, tokenID string) (model.RefreshToken, error)
	RevokeFamily(ctx context.Context, tenant, familyID string) (revoked int, err error)
	RevokePrincipal(ctx context.Context, tenant, principalID string) (revoked int, err error)
	// PurgeRefreshTokens forgets tokens of all tenants that expired before.
	PurgeRefreshTokens(ctx context.Context, beforeSecs uint64) (purged int, err error)
}
