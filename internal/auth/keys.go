package auth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// MaxKeys is how many keys a tenant may have. A token without a matching kid
// is tried against all of them, so this bounds what a stranger's token costs.
const MaxKeys = 32

// A Key verifies tokens of one tenant.
type Key struct {
	ID     string // the kid; may be empty
	Public ed25519.PublicKey
}

// ErrUnknownTenant is what a [KeySource] answers for a tenant it has no keys
// of.
var ErrUnknownTenant = errors.New("tenant has no keys")

// A KeySource knows the signing keys of tenants.
type KeySource interface {
	// Keys returns the keys of tenant, current first; the caller does not
	// change them. [ErrUnknownTenant] is final; any other error means that the
	// keys could not be had now.
	Keys(ctx context.Context, tenant string) ([]Key, error)
}

// A KeyFinder is a [KeySource] that may have to be told which key is wanted: it
// then looks whether there is a newer set.
type KeyFinder interface {
	KeySource
	// KeysFor is Keys for a token that names the key kid. The keys need not
	// contain it.
	KeysFor(ctx context.Context, tenant, kid string) ([]Key, error)
}

// StaticKeys is a [KeySource] in memory whose content may be replaced while it
// is read.
type StaticKeys struct {
	mu   sync.RWMutex
	keys map[string][]Key
}

// NewStaticKeys returns a source that knows no tenant.
func NewStaticKeys() *StaticKeys {
	return &StaticKeys{keys: make(map[string][]Key)}
}

// Set replaces the keys of tenant; with none, the tenant becomes unknown. It
// fails, and changes nothing, on more than [MaxKeys] keys or a key that is not
// an Ed25519 public key.
func (s *StaticKeys) Set(tenant string, keys []Key) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("tenant %q has %d keys, at most %d are allowed", tenant, len(keys), MaxKeys)
	}
	for i, key := range keys {
		if len(key.Public) != ed25519.PublicKeySize {
			return fmt.Errorf("tenant %q: key %d is %d bytes long, an Ed25519 public key has %d",
				tenant, i, len(key.Public), ed25519.PublicKeySize)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(keys) == 0 {
		delete(s.keys, tenant)
		return nil
	}
	s.keys[tenant] = slices.Clone(keys)
	return nil
}

// Keys implements [KeySource].
func (s *StaticKeys) Keys(_ context.Context, tenant string) ([]Key, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys, found := s.keys[tenant]
	if !found {
		return nil, ErrUnknownTenant
	}
	return keys, nil
}
