package auth

import (
	"context"
	"fmt"
	"slices"
)

// tenant finds or makes the record of a tenant; mu is held. When there is no
// room, one without keys makes it.
func (s *JWKSSource) tenant(name string) (*tenantKeys, error) {
	if t := s.tenants[name]; t != nil {
		return t, nil
	}
	if len(s.tenants) >= s.o.Tenants && !s.dropEmpty() {
		return nil, fmt.Errorf("key sets of %d tenants are remembered, which is the most", s.o.Tenants)
	}
	t := &tenantKeys{}
	s.tenants[name] = t
	return t, nil
}

func (s *JWKSSource) dropEmpty() bool {
	for name, t := range s.tenants {
		if len(t.keys) == 0 && t.flight == nil {
			delete(s.tenants, name)
			return true
		}
	}
	return false
}

// waitingFetches is how many fetches may wait for each that is under way.
const waitingFetches = 8

// fetch starts a fetch unless one is under way; mu is held.
func (s *JWKSSource) fetch(tenant string, t *tenantKeys) (chan struct{}, error) {
	if t.flight != nil {
		return t.flight, nil
	}
	if s.closed {
		return nil, context.Canceled
	}
	if s.flying >= s.o.Fetches*(1+waitingFetches) {
		return nil, errKeysBusy
	}
	s.flying++
	t.flight = make(chan struct{})
	s.ended.Add(1)
	go func(flight chan struct{}) {
		defer s.ended.Done()
		keys, err := s.load(tenant)
		s.mu.Lock()
		changed := s.landed(t, keys, err)
		t.flight = nil
		s.flying--
		s.mu.Unlock()
		if changed && s.o.Changed != nil {
			s.o.Changed(tenant)
		}
		close(flight)
	}(t.flight)
	return t.flight, nil
}

// load fetches and parses. The time for a slot counts as the fetch's.
func (s *JWKSSource) load(tenant string) ([]Key, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, errKeysBusy
	}
	s.mu.Lock()
	s.stats.Fetches++
	s.mu.Unlock()
	data, err := s.o.Fetch(ctx, tenant)
	if err != nil {
		return nil, err
	}
	keys, err := ParseJWKS(data)
	if err != nil {
		return nil, fmt.Errorf("key set of the tenant: %w", err)
	}
	return keys, nil
}

// landed takes the outcome of a fetch; mu is held. A failure, a refusal too,
// leaves the keys there are in force.
func (s *JWKSSource) landed(t *tenantKeys, keys []Key, err error) (changed bool) {
	now := s.o.Now()
	if t.keys != nil {
		// A first load starts no cool-down: a new key may have come just after it.
		t.coolAt = now.Add(s.o.Cooldown)
	}
	t.failure = err
	if err != nil {
		s.stats.Failures++
		t.retryAt = now.Add(s.o.Retry)
		return false
	}
	changed = !slices.EqualFunc(t.keys, keys, func(a, b Key) bool { return a.ID == b.ID && a.Public.Equal(b.Public) })
	t.keys, t.fetched = keys, now
	return changed
}
