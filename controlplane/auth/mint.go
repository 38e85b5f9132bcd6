package auth

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// maxMinted bounds a token in bytes. It has to fit into the frame in which a
// client presents it to a broker (wire 2.5).
const maxMinted = 60 << 10

// mint signs a token with the current key of its tenant: the one in the store,
// since one that was retired elsewhere a moment ago would make it worthless.
func (s *Service) mint(ctx context.Context, c token.Claims) (string, error) {
	ring, err := s.keys.load(ctx, c.Tenant)
	if err == nil && len(ring.public) == 0 {
		ring, err = s.ensureKey(ctx, c.Tenant)
	}
	if err != nil {
		return "", err
	}
	if ring.signer == nil {
		return "", errors.New("the current signing key of the tenant is damaged; stage and activate another")
	}
	signed, err := ring.signer.Mint(c)
	if err != nil {
		return "", err
	}
	if len(signed) > maxMinted {
		return "", invalid("the permissions do not fit into a token; ask for fewer with requested or resources")
	}
	return signed, nil
}

// checkAudience fills in the usual audience.
func checkAudience(audience string) (string, error) {
	switch audience {
	case "":
		return token.AudienceBroker, nil
	case token.AudienceBroker, token.AudienceControlPlane:
		return audience, nil
	}
	return "", invalid("audience must be %s or %s", token.AudienceBroker, token.AudienceControlPlane)
}

func texts(perms []rbac.Permission) []string {
	list := make([]string, len(perms))
	for i, p := range perms {
		list[i] = p.String()
	}
	return list
}

// wholeSeconds is a lifetime as answers write it.
func wholeSeconds(d time.Duration) uint64 { return uint64(d / time.Second) }
