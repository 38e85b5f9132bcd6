package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Defaults of [JWKSOptions] (control plane 15.9).
const (
	DefaultKeysAge      = time.Hour
	DefaultKeysRetry    = 5 * time.Second
	DefaultKeysCooldown = 30 * time.Second
	DefaultKeysTimeout  = 5 * time.Second
	DefaultKeysFetches  = 8
	DefaultKeysTenants  = 65_536
)

// JWKSOptions are what a [JWKSSource] is made with. A zero is the default.
type JWKSOptions struct {
	// Fetch asks for the key set of a tenant; [ErrUnknownTenant] says that
	// there is no such tenant. The answer is bounded by whoever fetches.
	Fetch func(ctx context.Context, tenant string) ([]byte, error)
	// Known says whether a tenant may exist; one that cannot is refused
	// without a fetch. nil fetches for all: the id comes from a stranger.
	Known func(tenant string) bool
	// Changed is told after a tenant got other keys.
	Changed func(tenant string)
	Now     func() time.Time // the machine's where it is nil

	Age      time.Duration // after which keys are fetched anew
	Retry    time.Duration // for which a failed fetch is not repeated
	Cooldown time.Duration // between two fetches for the sake of an unknown key id
	Timeout  time.Duration // of one fetch
	Fetches  int           // at once
	Tenants  int           // that are remembered
}

// A JWKSSource is a [KeySource] and [KeyFinder] that fetches key sets and
// remembers them. Keys it has are used for as long as newer ones cannot be had.
// It is safe for concurrent use; close it.
type JWKSSource struct {
	o      JWKSOptions
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{} // one taken by each fetch under way

	mu      sync.Mutex
	tenants map[string]*tenantKeys
	flying  int // fetches under way or waiting for a slot
	closed  bool
	ended   sync.WaitGroup
	stats   JWKSStats
}

// JWKSStats count fetches.
type JWKSStats struct {
	Fetches, Failures uint64
	Tenants           int // remembered, with keys or without
}

// tenantKeys is what is known of one tenant.
type tenantKeys struct {
	keys    []Key     // never changed in place
	fetched time.Time // when keys were fetched; zero for those given
	failure error     // of the last fetch, nil if it succeeded
	retryAt time.Time // no fetch before, after a failure
	coolAt  time.Time // no fetch before, for an unknown key id
	flight  chan struct{}
}

var errKeysBusy = errors.New("too many key sets are being fetched")

// NewJWKSSource returns a source that knows no keys yet.
func NewJWKSSource(o JWKSOptions) *JWKSSource {
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, d := range []struct {
		p   *time.Duration
		def time.Duration
	}{{&o.Age, DefaultKeysAge}, {&o.Retry, DefaultKeysRetry}, {&o.Cooldown, DefaultKeysCooldown}, {&o.Timeout, DefaultKeysTimeout}} {
		if *d.p <= 0 {
			*d.p = d.def
		}
	}
	if o.Fetches <= 0 {
		o.Fetches = DefaultKeysFetches
	}
	if o.Tenants <= 0 {
		o.Tenants = DefaultKeysTenants
	}
	s := &JWKSSource{o: o, slots: make(chan struct{}, o.Fetches), tenants: make(map[string]*tenantKeys)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends fetches and waits for them.
func (s *JWKSSource) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.ended.Wait()
}

// Keys implements [KeySource].
func (s *JWKSSource) Keys(ctx context.Context, tenant string) ([]Key, error) {
	return s.find(ctx, tenant, func([]Key) bool { return true })
}

// KeysFor implements [KeyFinder]: an unknown key id has the set fetched anew,
// once per cool-down and tenant, for all that wait.
func (s *JWKSSource) KeysFor(ctx context.Context, tenant, kid string) ([]Key, error) {
	return s.find(ctx, tenant, func(keys []Key) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return k.ID == kid })
	})
}

// Renew fetches the keys of a tenant although those there are may do, unless a
// fetch failed a moment ago. It is for who has keys ready before they are asked
// for.
func (s *JWKSSource) Renew(ctx context.Context, tenant string) ([]Key, error) {
	s.mu.Lock()
	t, err := s.tenant(tenant)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if t.failure != nil && s.o.Now().Before(t.retryAt) {
		defer s.mu.Unlock()
		return answer(t.keys, t.failure)
	}
	flight, err := s.fetch(tenant, t)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.await(ctx, t, flight)
}

// find answers with the keys of a tenant, and fetches first where there are
// none, where they are old, or where enough says that they do not do.
func (s *JWKSSource) find(ctx context.Context, tenant string, enough func([]Key) bool) ([]Key, error) {
	if s.o.Known != nil && !s.o.Known(tenant) {
		return nil, ErrUnknownTenant
	}
	s.mu.Lock()
	t, err := s.tenant(tenant)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	flight, err := s.judge(tenant, t, enough)
	if flight == nil {
		keys := t.keys
		s.mu.Unlock()
		return answer(keys, err)
	}
	s.mu.Unlock()
	return s.await(ctx, t, flight)
}

func (s *JWKSSource) await(ctx context.Context, t *tenantKeys, flight chan struct{}) ([]Key, error) {
	select {
	case <-flight:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return answer(t.keys, t.failure)
}

func answer(keys []Key, err error) ([]Key, error) {
	if len(keys) > 0 {
		return keys, nil
	}
	if err == nil {
		err = ErrUnknownTenant
	}
	return nil, err
}

// judge says which fetch to wait for, if any; mu is held.
func (s *JWKSSource) judge(tenant string, t *tenantKeys, enough func([]Key) bool) (chan struct{}, error) {
	now := s.o.Now()
	switch {
	case len(t.keys) == 0:
		if t.flight == nil && t.failure != nil && now.Before(t.retryAt) {
			return nil, t.failure
		}
		return s.fetch(tenant, t)
	case !enough(t.keys):
		if t.flight != nil {
			return t.flight, nil
		}
		if now.Before(t.coolAt) {
			return nil, nil
		}
		flight, _ := s.fetch(tenant, t)
		return flight, nil
	case now.Sub(t.fetched) < s.o.Age:
		return nil, nil
	}
	// The keys are old. While the other side is known to be away nobody waits.
	if t.failure != nil {
		if t.flight == nil && !now.Before(t.retryAt) {
			_, _ = s.fetch(tenant, t)
		}
		return nil, nil
	}
	flight, _ := s.fetch(tenant, t)
	return flight, nil
}
