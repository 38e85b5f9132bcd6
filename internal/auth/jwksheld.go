package auth

import (
	"slices"
	"time"
)

// Put gives the keys a tenant had, from an earlier run. They are used at once
// and fetched anew when they are first asked for; a tenant that has keys keeps
// them.
func (s *JWKSSource) Put(tenant string, keys []Key) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, err := s.tenant(tenant); err == nil && len(t.keys) == 0 {
		t.keys = slices.Clone(keys)
	}
}

// Forget drops what is known of a tenant.
func (s *JWKSSource) Forget(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, tenant)
}

// Held are the keys of a tenant that are in memory, and when they were fetched:
// zero where that was in an earlier run. It never fetches.
func (s *JWKSSource) Held(tenant string) (keys []Key, fetched time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[tenant]; t != nil {
		return t.keys, t.fetched
	}
	return nil, time.Time{}
}

// Stats reads the counts.
func (s *JWKSSource) Stats() JWKSStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Tenants = len(s.tenants)
	return st
}
