package auth

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	token "github.com/felixlog/felix/internal/auth"
)

// JWKS is the public keys of a tenant, current first (control plane 15.6). A
// tenant that has none yet gets one. Whoever asks will refuse what is not in the
// answer, so that it holds every key that was made before; only while nobody
// can tell, keys that are known are answered as they are.
func (s *Service) JWKS(ctx context.Context, tenant string) (JWKS, error) {
	public, err := []token.Key(nil), error(token.ErrUnknownTenant)
	if token.ValidTenant(tenant) {
		public, err = s.keys.latest(ctx, tenant)
	}
	if errors.Is(err, token.ErrUnknownTenant) {
		public, err = s.firstKeys(ctx, tenant)
	}
	if err != nil {
		return JWKS{}, s.unavailable(ctx, tenant, err)
	}
	set := JWKS{Keys: make([]JWK, 0, len(public))}
	for _, key := range public {
		set.Keys = append(set.Keys, JWK{
			KeyType: "OKP", KeyID: key.ID, Algorithm: "EdDSA", Use: "sig", Curve: "Ed25519",
			X: base64.RawURLEncoding.EncodeToString(key.Public),
		})
	}
	return set, nil
}

// firstKeys looks before it writes: anybody may ask, for any tenant.
func (s *Service) firstKeys(ctx context.Context, tenant string) ([]token.Key, error) {
	err := error(&store.NotFoundError{What: "tenant"})
	if token.ValidTenant(tenant) {
		_, err = s.store.Tenant(ctx, tenant)
	}
	if isMissing(err) {
		if s.ready(ctx) != nil {
			return nil, s.refuse(ctx, tenant, cannotVerify())
		}
		return nil, notFound("tenant not found")
	}
	if err != nil {
		return nil, err
	}
	ring, err := s.ensureKey(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return ring.public, nil
}

func isMissing(err error) bool {
	var missing *store.NotFoundError
	return errors.As(err, &missing)
}

// CreateTenant makes a tenant and its first signing key, both or neither. The
// error is the store's.
func (s *Service) CreateTenant(ctx context.Context, t model.Tenant) error {
	key, err := s.newKey(model.KeyCurrent)
	if err != nil {
		return err
	}
	return s.store.CreateTenantWithKey(ctx, t, key)
}

// EnsureKey gives a tenant that was made without a signing key its first one;
// the first token or JWKS does so too.
func (s *Service) EnsureKey(ctx context.Context, tenant string) error {
	_, err := s.ensureKey(ctx, tenant)
	return err
}

func (s *Service) ensureKey(ctx context.Context, tenant string) (*keyring, error) {
	key, err := s.newKey(model.KeyCurrent)
	if err != nil {
		return nil, err
	}
	keys, err := s.store.EnsureSigningKey(ctx, tenant, key)
	if err != nil {
		return nil, err
	}
	return s.keys.replace(tenant, keys), nil
}

// KeyView is the key ids of a tenant (control plane 15.7).
func (s *Service) KeyView(ctx context.Context, tenant string) (KeyView, error) {
	keys, err := s.store.SigningKeys(ctx, tenant)
	if err != nil {
		return KeyView{}, err
	}
	return viewOf(keys), nil
}

// StageKey publishes a new key that verifies and does not sign yet. Brokers
// keep key sets for an hour: wait for that before activating it.
func (s *Service) StageKey(ctx context.Context, tenant string) (KeyView, error) {
	if err := s.EnsureKey(ctx, tenant); err != nil {
		return KeyView{}, err
	}
	key, err := s.newKey(model.KeyStaged)
	if err != nil {
		return KeyView{}, err
	}
	keys, err := s.store.StageSigningKey(ctx, tenant, key)
	return s.changed(tenant, keys, err)
}

// ActivateKey makes a key the one that signs. The one before goes on verifying.
func (s *Service) ActivateKey(ctx context.Context, tenant, kid string) (KeyView, error) {
	keys, err := s.store.ActivateSigningKey(ctx, tenant, kid)
	return s.changed(tenant, keys, err)
}

// RetireKey forgets a key, and with it every token that it signed. The current
// one is refused by the store, with [store.CurrentKey].
func (s *Service) RetireKey(ctx context.Context, tenant, kid string) (KeyView, error) {
	keys, err := s.store.RetireSigningKey(ctx, tenant, kid)
	return s.changed(tenant, keys, err)
}

// changed takes over the keys that a change left. After an error nobody knows
// what is there, so that it is read again.
func (s *Service) changed(tenant string, keys []model.SigningKey, err error) (KeyView, error) {
	if err != nil {
		s.keys.drop(tenant)
		return KeyView{}, err
	}
	s.keys.replace(tenant, keys)
	return viewOf(keys), nil
}

func viewOf(keys []model.SigningKey) KeyView {
	view := KeyView{Verifying: make([]string, 0, len(keys))}
	for _, key := range keys {
		if key.Status == model.KeyCurrent {
			view.Current = key.KID
		}
		view.Verifying = append(view.Verifying, key.KID)
	}
	return view
}

func (s *Service) newKey(status model.KeyStatus) (model.SigningKey, error) {
	private, err := token.GenerateKey(s.random)
	if err != nil {
		return model.SigningKey{}, err
	}
	kid, err := s.randomHex(16)
	if err != nil {
		return model.SigningKey{}, err
	}
	public := token.NewSigner(kid, private).Key().Public
	return model.SigningKey{KID: kid, Seed: private.Seed(), Public: public, Status: status}, nil
}

// randomHex is n random bytes in lower-case hex.
func (s *Service) randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.random, b); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return hex.EncodeToString(b), nil
}
