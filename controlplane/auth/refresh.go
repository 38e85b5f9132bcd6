package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	token "github.com/felixlog/felix/internal/auth"
)

// refreshPart is the random bytes of either half of a refresh token.
const refreshPart = 32

// newRefreshToken makes a token, and the record that is kept of it: never the
// secret (control plane 15.5).
func (s *Service) newRefreshToken(in session, now time.Time) (string, model.RefreshToken, error) {
	id, err := s.randomHex(refreshPart)
	if err != nil {
		return "", model.RefreshToken{}, err
	}
	secret, err := s.randomHex(refreshPart)
	if err != nil {
		return "", model.RefreshToken{}, err
	}
	return id + "." + secret, model.RefreshToken{
		TenantID: in.tenant, TokenID: id, PrincipalID: in.principal, Groups: in.groups, Issuer: in.issuer,
		SecretHash: hashSecret(secret), FamilyID: in.family, Audience: in.audience, Actor: in.actor, Narrowing: in.narrowing,
		IssuedAtSecs: uint64(now.Unix()), ExpiresAtSecs: uint64(now.Add(s.refreshTTL).Unix()),
	}, nil
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func parseRefreshToken(text string) (id, secret string, ok bool) {
	id, secret, found := strings.Cut(text, ".")
	return id, secret, found && isHex(id) && isHex(secret)
}

func isHex(part string) bool {
	if len(part) != 2*refreshPart {
		return false
	}
	return !strings.ContainsFunc(part, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}

// Refresh spends a refresh token for new tokens of the same session (control
// plane 15.5). Rights are worked out anew, so that what was taken away ends
// here. A token is spent by the first who names it, whoever that is; naming it
// again ends the whole session.
//
// A session also ends when the tenant no longer trusts the issuer that vouched
// for it.
func (s *Service) Refresh(ctx context.Context, tenant string, r RefreshRequest) (*TokenResponse, error) {
	if _, err := checkAudience(r.Audience); err != nil {
		return nil, err
	}
	id, secret, ok := parseRefreshToken(r.RefreshToken)
	if !ok || !token.ValidTenant(tenant) {
		return nil, s.refuseRefresh(ctx, tenant)
	}
	// Before the token is spent: whoever is told that he cannot be verified tries
	// again.
	if err := s.catchUp(ctx, tenant); err != nil {
		return nil, err
	}
	old, err := s.store.TakeRefreshToken(ctx, tenant, id)
	if isMissing(err) {
		if s.ready(ctx) != nil {
			return nil, s.refuse(ctx, tenant, cannotVerify())
		}
		return nil, s.refuseRefresh(ctx, tenant)
	}
	if err != nil {
		return nil, err
	}
	if err := s.judge(ctx, old, secret); err != nil {
		return nil, err
	}
	if r.Audience != "" && r.Audience != old.Audience {
		return nil, invalid("audience must be that of the exchange, %s; the refresh token is spent: exchange again", old.Audience)
	}
	return s.renew(ctx, old)
}

// judge says whether a token that was just taken may be used.
func (s *Service) judge(ctx context.Context, old model.RefreshToken, secret string) error {
	match := subtle.ConstantTimeCompare([]byte(hashSecret(secret)), []byte(old.SecretHash)) == 1
	switch {
	case old.Used:
		s.observer.RefreshReplayed()
		return s.endFamily(ctx, old)
	case !match:
		s.observer.RefreshBadSecret()
		return s.refuseRefresh(ctx, old.TenantID)
	case old.Revoked || uint64(max(s.now().Unix(), 0)) >= old.ExpiresAtSecs:
		return s.refuseRefresh(ctx, old.TenantID)
	}
	return nil
}

func (s *Service) renew(ctx context.Context, old model.RefreshToken) (*TokenResponse, error) {
	in := session{
		tenant: old.TenantID, principal: old.PrincipalID, groups: old.Groups, issuer: old.Issuer,
		audience: old.Audience, actor: old.Actor, narrowing: old.Narrowing, family: old.FamilyID,
	}
	issuers, err := s.store.Issuers(ctx, in.tenant)
	if err != nil {
		return nil, s.tenantGone(ctx, in.tenant, err)
	}
	if !slices.ContainsFunc(issuers, func(i model.IdpIssuer) bool { return i.Issuer == in.issuer }) {
		return nil, s.endFamily(ctx, old)
	}
	perms, err := s.permissions(ctx, in)
	if err != nil {
		return nil, s.tenantGone(ctx, in.tenant, err)
	}
	if len(perms) == 0 {
		return nil, s.endFamily(ctx, old)
	}
	answer, err := s.issue(ctx, in, perms)
	if err != nil {
		return nil, s.tenantGone(ctx, in.tenant, err)
	}
	// A replay, or somebody who revokes the principal, may have ended the family
	// after the old token was taken and before the new one was there to be
	// revoked. The old one then says so.
	again, err := s.store.TakeRefreshToken(ctx, in.tenant, old.TokenID)
	if err != nil {
		return nil, s.tenantGone(ctx, in.tenant, err)
	}
	if again.Revoked {
		return nil, s.endFamily(ctx, old)
	}
	s.observer.RefreshIssued("refresh")
	return answer, nil
}

// endFamily revokes all tokens of a session.
func (s *Service) endFamily(ctx context.Context, t model.RefreshToken) error {
	n, err := s.store.RevokeFamily(ctx, t.TenantID, t.FamilyID)
	if err != nil {
		return s.tenantGone(ctx, t.TenantID, err)
	}
	s.observer.RefreshRevoked(n)
	return s.refuseRefresh(ctx, t.TenantID)
}

// refuseRefresh is the same for all that can be wrong with a refresh token.
func (s *Service) refuseRefresh(ctx context.Context, tenant string) *Refusal {
	return s.refuse(ctx, tenant, forbidden(ReasonRefreshRefused, "the refresh token is not usable; exchange again"))
}
