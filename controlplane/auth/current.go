package auth

import (
	"context"
	"errors"

	"github.com/felixlog/felix/controlplane/store"
)

// errBehind says that a key or tenant is not known here, and that it cannot be
// told whether another instance knows it.
var errBehind = errors.New("the store does not catch up with the other instances")

// catchUp comes before a decision that gives or refuses rights: what was changed
// at another instance counts here as soon as it was answered there. Where that
// cannot be told, nothing has been done.
func (s *Service) catchUp(ctx context.Context, tenant string) error {
	err := s.store.CatchUp(ctx)
	if silent := (*store.UnavailableError)(nil); errors.As(err, &silent) {
		return s.refuse(ctx, tenant, cannotVerify())
	}
	return err
}

// unavailable is the answer where keys could not be had, which is no verdict on
// a token.
func (s *Service) unavailable(ctx context.Context, tenant string, err error) error {
	if errors.Is(err, errBehind) {
		return s.refuse(ctx, tenant, cannotVerify())
	}
	return err
}
