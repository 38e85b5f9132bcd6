package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/controlplane/store"
)

// AdminRole is the role that a bootstrap gives the first administrators.
const AdminRole = "role:tenant-admin"

// The outcomes of bootstrap attempts, for the counter (control plane 22).
const (
	bootstrapInitialized = "initialized"
	bootstrapRefused     = "refused"  // the caller knew the secret, and yet
	bootstrapRejected    = "rejected" // the caller did not know it
)

// maxBootstrapToken bounds what is compared.
const maxBootstrapToken = 4096

// A bootstrapGuard knows the accepted secrets, by their hashes.
type bootstrapGuard struct {
	enabled   bool
	devTokens bool
	hashes    [][sha256.Size]byte
}

func newBootstrapGuard(o BootstrapOptions) bootstrapGuard {
	g := bootstrapGuard{enabled: o.Enabled, devTokens: o.DevTokens}
	for _, secret := range []string{o.Token, o.PreviousToken} {
		if secret != "" {
			g.hashes = append(g.hashes, sha256.Sum256([]byte(secret)))
		}
	}
	return g
}

// accepts compares with every secret, without stopping at a match, so that the
// time taken says nothing.
func (g *bootstrapGuard) accepts(presented string) bool {
	sum := sha256.Sum256([]byte(presented))
	match := 0
	for i := range g.hashes {
		match |= subtle.ConstantTimeCompare(sum[:], g.hashes[i][:])
	}
	return match == 1
}

// admit checks the secret of a bootstrap request.
func (s *Service) admit(ctx context.Context, tenant, presented string) error {
	var reason Reason
	var message string
	switch {
	case presented == "":
		reason, message = ReasonMissingToken, "there is no bootstrap token: send it as X-Felix-Bootstrap-Token"
	case len(presented) > maxBootstrapToken:
		reason, message = ReasonMalformedToken, "the bootstrap token is too long"
	case !s.bootstrap.accepts(presented):
		reason, message = ReasonInvalidToken, "the bootstrap token is not valid"
	default:
		return nil
	}
	s.observer.Bootstrap(bootstrapRejected, string(reason))
	return s.refuse(ctx, tenant, unauthorized(reason, message))
}

// Bootstrap initialises a tenant, exactly once: its administrators, issuers and
// first key, and the tenant itself if it is missing (control plane 17). It is
// the only way for rules over the cluster or a node to come into being.
func (s *Service) Bootstrap(ctx context.Context, tenant, presented string, r BootstrapRequest) (*BootstrapResponse, error) {
	if !s.bootstrap.enabled {
		return nil, &Refusal{Status: http.StatusNotFound, Code: CodeNotEnabled, Message: "bootstrap is not enabled"}
	}
	if err := s.admit(ctx, tenant, presented); err != nil {
		return nil, err
	}
	answer, reason, err := s.initialize(ctx, tenant, r)
	if err != nil {
		s.observer.Bootstrap(bootstrapRefused, reason)
		s.logger.WarnContext(ctx, "bootstrap refused", slog.String("tenant", clip(tenant)), slog.String("reason", reason))
		return nil, err
	}
	s.observer.Bootstrap(bootstrapInitialized, reason)
	s.logger.WarnContext(ctx, "tenant initialized by bootstrap", slog.String("tenant", clip(tenant)))
	return answer, nil
}

func (s *Service) initialize(ctx context.Context, tenant string, r BootstrapRequest) (*BootstrapResponse, string, error) {
	seed, err := s.seedOf(tenant, r)
	if err != nil {
		return nil, "invalid_request", err
	}
	if seed.Key, err = s.newKey(model.KeyCurrent); err != nil {
		return nil, "error", err
	}
	keys, err := s.store.BootstrapTenant(ctx, model.Tenant{TenantID: tenant, DisplayName: r.DisplayName}, seed)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && conflict.Reason == store.Bootstrapped {
		return nil, "already_initialized", &Refusal{
			Status: http.StatusConflict, Code: CodeAlreadyInitialized, Message: "the tenant is initialized already",
		}
	}
	if err != nil {
		return nil, "error", err
	}
	s.keys.replace(tenant, keys)
	// The tenant may have had a key, which then stays the one that signs.
	return &BootstrapResponse{
		TenantID: tenant, KID: viewOf(keys).Current, Status: bootstrapInitialized,
		JWKSURL: "/v1/tenants/" + url.PathEscape(tenant) + "/.well-known/jwks.json",
	}, "ok", nil
}

// seedOf checks a request and adds the role of administrators.
func (s *Service) seedOf(tenant string, r BootstrapRequest) (model.AuthSeed, error) {
	none := model.AuthSeed{}
	if err := s.validateName("tenant", tenant); err != nil {
		return none, invalid("%v", err)
	}
	if _, err := rbac.ParseObject(rbac.Tenant(tenant).String()); err != nil {
		return none, invalid("the tenant id cannot be part of an object: it is empty, too long, or holds a /, : or *")
	}
	if err := checkText(r.DisplayName, maxDisplayName); err != nil {
		return none, invalid("display_name %v", err)
	}
	switch {
	case len(r.InitialAdminPrincipals) == 0:
		return none, invalid("initial_admin_principals is empty; name at least one, as the hex of sha256(\"issuer|subject\") or group:ISSUER#GROUP")
	case len(r.IdpIssuers) > maxIssuers || len(r.InitialAdminPrincipals) > maxSeedRules ||
		len(r.Policies) > maxSeedRules || len(r.Groupings) > maxSeedRules:
		return none, invalid("at most %d idp_issuers and %d each of initial_admin_principals, policies and groupings are allowed",
			maxIssuers, maxSeedRules)
	}
	seed := model.AuthSeed{Policies: adminPolicies(tenant)}
	for i, issuer := range r.IdpIssuers {
		if err := s.upstream.CheckIssuer(issuer); err != nil {
			return none, invalid("idp_issuers[%d]: %v", i, err)
		}
		if slices.ContainsFunc(seed.Issuers, func(other model.IdpIssuer) bool { return other.Issuer == issuer.Issuer }) {
			return none, invalid("idp_issuers[%d]: the issuer is named twice", i)
		}
		seed.Issuers = append(seed.Issuers, issuer)
	}
	for i, policy := range r.Policies {
		if _, err := s.checkPolicy(tenant, policy); err != nil {
			return none, invalid("policies[%d]: %v", i, err)
		}
		seed.Policies = appendNew(seed.Policies, policy)
	}
	for i, principal := range r.InitialAdminPrincipals {
		if err := checkSubject(principal); err != nil {
			return none, invalid("initial_admin_principals[%d] %v", i, err)
		}
		seed.Groupings = appendNew(seed.Groupings, model.Grouping{User: principal, Role: AdminRole})
	}
	for i, grouping := range r.Groupings {
		if err := errors.Join(checkSubject(grouping.User), checkSubject(grouping.Role)); err != nil {
			return none, invalid("groupings[%d]: user or role is blank, too long or holds control characters", i)
		}
		seed.Groupings = appendNew(seed.Groupings, grouping)
	}
	return seed, nil
}

func adminPolicies(tenant string) []model.Policy {
	whole := rbac.Tenant(tenant).String()
	policies := []model.Policy{}
	for _, action := range []rbac.Action{rbac.TenantManage, rbac.RBACView, rbac.RBACPolicyManage, rbac.RBACAssignmentManage} {
		policies = append(policies, model.Policy{Subject: AdminRole, Object: whole, Action: action.String()})
	}
	return append(policies, model.Policy{
		Subject: AdminRole, Object: rbac.Namespace(tenant, rbac.Any).String(), Action: rbac.NamespaceManage.String(),
	})
}

func appendNew[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
