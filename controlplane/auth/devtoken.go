package auth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// maxDevTTL bounds a token made to measure.
const maxDevTTL = 24 * time.Hour

// DevToken makes a token with the permissions that were asked for, within the
// tenant, for whoever knows the bootstrap secret. It is for development only
// and off unless [BootstrapOptions.DevTokens] is set (control plane 4.10).
func (s *Service) DevToken(ctx context.Context, tenant, presented string, r DevTokenRequest) (*TokenResponse, error) {
	if !s.bootstrap.enabled || !s.bootstrap.devTokens {
		return nil, &Refusal{Status: http.StatusNotFound, Code: CodeNotEnabled, Message: "development tokens are not enabled"}
	}
	if err := s.admit(ctx, tenant, presented); err != nil {
		return nil, err
	}
	audience, err := checkAudience(r.Audience)
	if err != nil {
		return nil, err
	}
	if r.Subject == "" {
		r.Subject = "dev"
	}
	if err := checkSubject(r.Subject); err != nil {
		return nil, invalid("subject %v", err)
	}
	ttl := s.accessTTL
	if r.TTLSeconds > wholeSeconds(maxDevTTL) {
		return nil, invalid("ttl_seconds is above %d", wholeSeconds(maxDevTTL))
	}
	if r.TTLSeconds > 0 {
		ttl = time.Duration(r.TTLSeconds) * time.Second
	}
	perms, err := devPermissions(tenant, r.Permissions)
	if err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, tenant); err != nil {
		return nil, err
	}
	if _, err := s.store.Tenant(ctx, tenant); err != nil {
		return nil, err
	}
	now := s.now()
	signed, err := s.mint(ctx, token.Claims{
		Tenant: tenant, Subject: r.Subject, Audience: audience,
		Permissions: texts(perms), IssuedAt: now, Expires: now.Add(ttl),
	})
	if err != nil {
		return nil, err
	}
	s.logger.WarnContext(ctx, "development token made", slog.String("tenant", clip(tenant)), slog.String("subject", clip(r.Subject)))
	return &TokenResponse{FelixToken: signed, ExpiresIn: wholeSeconds(ttl), TokenType: "Bearer"}, nil
}

func devPermissions(tenant string, wanted []string) ([]rbac.Permission, error) {
	if len(wanted) == 0 || len(wanted) > maxResources {
		return nil, invalid("permissions must hold between 1 and %d, each action:object", maxResources)
	}
	perms := make([]rbac.Permission, 0, len(wanted))
	for i, text := range wanted {
		p, err := rbac.ParsePermission(text)
		if err != nil {
			return nil, invalid("permissions[%d]: %v", i, err)
		}
		if p.Object.Tenant != tenant {
			return nil, invalid("permissions[%d] is not within the tenant", i)
		}
		perms = append(perms, p)
	}
	return perms, nil
}
