package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/felixlog/felix/controlplane/internal/rounds"
	"github.com/felixlog/felix/controlplane/model"
	token "github.com/felixlog/felix/internal/auth"
)

// The bounds of the key cache. Other instances change keys too, so nothing is
// believed for long, and a key or tenant that is missing is looked for at once,
// but not for every token with an invented one: keyCoolDown bounds what is read
// for the sake of missing keys, and all that miss something have the store catch
// up together, once a keyInterval at most.
const (
	keyTTL      = 5 * time.Second
	keyCoolDown = 500 * time.Millisecond
	keyInterval = 25 * time.Millisecond
	keyPatience = 2 * time.Second // with a store that does not catch up
	keyTimeout  = 10 * time.Second
	maxKeyrings = 4096
)

// A keyCache is a [token.KeyFinder] over the store.
type keyCache struct {
	store  Store
	now    func() time.Time
	logger *slog.Logger
	flight singleflight.Group
	rounds *rounds.Rounds // of catching up, for who misses something

	mu    sync.Mutex
	rings map[string]*keyring
	epoch uint64 // advanced by every change; a load that began before is not kept
	round uint64 // the last round that succeeded
}

func newKeyCache(store Store, now func() time.Time, logger *slog.Logger) *keyCache {
	c := &keyCache{store: store, now: now, logger: logger, rings: make(map[string]*keyring)}
	c.rounds = rounds.New(keyInterval, keyTimeout, func(ctx context.Context) error { return c.store.CatchUp(ctx) })
	return c
}

// Keys implements [token.KeySource].
func (c *keyCache) Keys(ctx context.Context, tenant string) ([]token.Key, error) {
	return c.KeysFor(ctx, tenant, "")
}

// KeysFor implements [token.KeyFinder]. What it does not find was not there at
// any instance when it was called, or the error is errBehind.
func (c *keyCache) KeysFor(ctx context.Context, tenant, kid string) ([]token.Key, error) {
	ring, err := c.ring(ctx, tenant, kid)
	if err == nil && !ring.answers(kid) {
		ring, err = c.lookAgain(ctx, tenant, kid)
	}
	if err != nil {
		return nil, err
	}
	if len(ring.public) == 0 {
		return nil, token.ErrUnknownTenant
	}
	return ring.public, nil
}

// latest are all keys of a tenant that were there, at any instance, when it was
// called. Where that cannot be told it answers what is known, and for an unknown
// tenant errBehind.
func (c *keyCache) latest(ctx context.Context, tenant string) ([]token.Key, error) {
	ring, err := c.lookAgain(ctx, tenant, "")
	if err != nil {
		return nil, err
	}
	if len(ring.public) == 0 {
		return nil, token.ErrUnknownTenant
	}
	return ring.public, nil
}

// lookAgain reads the keys of a tenant once the store has caught up. If it does
// not, keys that do are good all the same.
func (c *keyCache) lookAgain(ctx context.Context, tenant, kid string) (*keyring, error) {
	patience, cancel := context.WithTimeout(ctx, keyPatience)
	round, behind := c.rounds.Join(patience)
	cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.mu.Lock()
	if behind == nil {
		c.round = max(c.round, round)
	}
	ring := c.rings[tenant]
	c.mu.Unlock()
	if behind != nil || ring == nil || ring.round < round {
		var err error
		if ring, err = c.read(ctx, tenant, round); err != nil {
			return nil, err
		}
	}
	if behind != nil && !ring.answers(kid) {
		return nil, errBehind
	}
	return ring, nil
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
	round := c.round
	c.mu.Unlock()
	return c.read(ctx, tenant, round)
}

// read reads the keys of a tenant, after the round. The read is everybody's who
// asks after that round and the last change, so that it must not end with the
// one who asked first.
func (c *keyCache) read(ctx context.Context, tenant string, round uint64) (*keyring, error) {
	detached := context.WithoutCancel(ctx)
	c.mu.Lock()
	flight := fmt.Sprintf("%d %d %s", c.epoch, round, tenant)
	c.mu.Unlock()
	result := c.flight.DoChan(flight, func() (any, error) {
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
	epoch, round := c.epoch, c.round
	c.mu.Unlock()
	now := c.now()
	keys, err := c.store.SigningKeys(ctx, tenant)
	if err != nil {
		return nil, err
	}
	ring := c.parse(tenant, keys, now)
	ring.round = round
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
	c.keep(tenant, ring, now)
	return ring
}

func (c *keyCache) drop(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
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
