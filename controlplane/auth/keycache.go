package auth

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/felixlog/felix/controlplane/model"
	token "github.com/felixlog/felix/internal/auth"
)

// The bounds of the key cache. Other instances change keys too, so nothing is
// believed for long, and a key that is missing is looked for at once, but not
// by every token with an invented kid.
const (
	keyTTL      = 5 * time.Second
	keyCoolDown = 500 * time.Millisecond
	keyTimeout  = 10 * time.Second
	maxKeyrings = 4096
)

// A keyring is the parsed keys of one tenant.
type keyring struct {
	signer *token.Signer // of the current key; nil if there is none
	public []token.Key   // all, current first
	loaded time.Time
}

func (r *keyring) has(kid string) bool {
	for _, key := range r.public {
		if key.ID == kid {
			return true
		}
	}
	return false
}

// A keyCache is a [token.KeyFinder] over the store.
type keyCache struct {
	store  Store
	now    func() time.Time
	logger *slog.Logger
	flight singleflight.Group

	mu    sync.Mutex
	rings map[string]*keyring
	epoch uint64 // advanced by every change; a load that began before is not kept
}

func newKeyCache(store Store, now func() time.Time, logger *slog.Logger) *keyCache {
	return &keyCache{store: store, now: now, logger: logger, rings: make(map[string]*keyring)}
}

// Keys implements [token.KeySource].
func (c *keyCache) Keys(ctx context.Context, tenant string) ([]token.Key, error) {
	return c.KeysFor(ctx, tenant, "")
}

// KeysFor implements [token.KeyFinder].
func (c *keyCache) KeysFor(ctx context.Context, tenant, kid string) ([]token.Key, error) {
	ring, err := c.ring(ctx, tenant, kid)
	if err != nil {
		return nil, err
	}
	if len(ring.public) == 0 {
		return nil, token.ErrUnknownTenant
	}
	return ring.public, nil
}

// ring is never nil without an error. A tenant without keys is not cached: who
// asks for tenants that do not exist should not fill memory.
func (c *keyCache) ring(ctx context.Context, tenant, kid string) (*keyring, error) {
	c.mu.Lock()
	ring := c.rings[tenant]
	if ring != nil {
		age := c.now().Sub(ring.loaded)
		if age < keyTTL && (kid == "" || ring.has(kid) || age < keyCoolDown) {
			c.mu.Unlock()
			return ring, nil
		}
	}
	c.mu.Unlock()
	// The load is everybody's, so that it must not end with the one who asked
	// first.
	detached := context.WithoutCancel(ctx)
	result := c.flight.DoChan(tenant, func() (any, error) {
		ctx, cancel := context.WithTimeout(detached, keyTimeout)
		defer cancel()
		return c.load(ctx, tenant)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*keyring), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *keyCache) load(ctx context.Context, tenant string) (*keyring, error) {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	now := c.now()
	keys, err := c.store.SigningKeys(ctx, tenant)
	if err != nil {
		return nil, err
	}
	ring := c.parse(tenant, keys, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch == c.epoch {
		c.keep(tenant, ring, now)
	}
	return ring, nil
}

// replace keeps what a change of keys left.
func (c *keyCache) replace(tenant string, keys []model.SigningKey) *keyring {
	now := c.now()
	ring := c.parse(tenant, keys, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.flight.Forget(tenant)
	c.keep(tenant, ring, now)
	return ring
}

func (c *keyCache) drop(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.flight.Forget(tenant)
	delete(c.rings, tenant)
}

// keep makes room by giving up what has to be read again anyway, and else any.
func (c *keyCache) keep(tenant string, ring *keyring, now time.Time) {
	if len(ring.public) == 0 {
		delete(c.rings, tenant)
		return
	}
	if len(c.rings) >= maxKeyrings {
		for other, old := range c.rings {
			if now.Sub(old.loaded) >= keyTTL {
				delete(c.rings, other)
			}
		}
		for other := range c.rings {
			if len(c.rings) < maxKeyrings {
				break
			}
			delete(c.rings, other)
		}
	}
	c.rings[tenant] = ring
}

// parse leaves out a key whose public part is not that of its seed: tokens
// signed with it would verify nowhere.
func (c *keyCache) parse(tenant string, keys []model.SigningKey, now time.Time) *keyring {
	ring := &keyring{loaded: now, public: make([]token.Key, 0, len(keys))}
	for _, key := range keys {
		if len(key.Seed) != ed25519.SeedSize {
			c.damaged(tenant, key)
			continue
		}
		private := ed25519.NewKeyFromSeed(key.Seed)
		signer := token.NewSigner(key.KID, private)
		if !signer.Key().Public.Equal(ed25519.PublicKey(key.Public)) {
			c.damaged(tenant, key)
			continue
		}
		if key.Status == model.KeyCurrent {
			ring.signer = signer
		}
		ring.public = append(ring.public, signer.Key())
	}
	return ring
}

func (c *keyCache) damaged(tenant string, key model.SigningKey) {
	c.logger.Error("signing key is damaged: its public part does not belong to its seed; stage and activate another, then retire it",
		slog.String("tenant", clip(tenant)), slog.String("kid", clip(key.KID)))
}
