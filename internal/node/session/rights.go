package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/internal/auth"
)

// rights are those a client stream was granted with its token. They end once,
// and the stream with the next request.
type rights struct{ why atomic.Pointer[refusal] }

// ended is the answer to everything once the rights have ended; nil before.
func (r *rights) ended() *refusal { return r.why.Load() }

func (r *rights) end(why *refusal) { r.why.CompareAndSwap(nil, why) }

// onRightsEnd runs f once when p's rights end, and says why: its token's expiry
// plus leeway (design decision 8), or the removal of its tenant. f must not
// block.
func (s *Server) onRightsEnd(p *auth.Principal, f func(why *refusal)) (stop func()) {
	var first sync.Once // one end, whichever comes first
	fire := func(why *refusal) { first.Do(func() { f(why) }) }
	leave := s.tenants.join(p.Tenant, func() { fire(errTenantRemoved) })
	if !s.cfg.EnforceExpiry || p.Expires.IsZero() {
		return leave
	}
	left := p.Deadline().Sub(s.clock.Now())
	if left > maxTimer {
		return leave
	}
	cancel := s.clock.AfterFunc(max(left, 0), func() { fire(errExpired) })
	return func() {
		leave()
		cancel()
	}
}

// maxTimer leaves tokens meant never to expire without a timer.
const maxTimer = 10 * 365 * 24 * time.Hour

// tenants are who is to hear of a tenant's removal: one entry for each client
// stream and event stream there is.
type tenants struct {
	mu     sync.Mutex
	listen map[string]map[*tenantListener]struct{}
}

type tenantListener struct{ removed func() }

// join has f called when the tenant is removed, until leave is called.
func (t *tenants) join(tenant string, f func()) (leave func()) {
	l := &tenantListener{f}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listen == nil {
		t.listen = make(map[string]map[*tenantListener]struct{})
	}
	if t.listen[tenant] == nil {
		t.listen[tenant] = make(map[*tenantListener]struct{})
	}
	t.listen[tenant][l] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.listen[tenant], l); len(t.listen[tenant]) == 0 {
			delete(t.listen, tenant)
		}
	}
}

// removed ends the rights of all who belong to a tenant.
func (t *tenants) removed(tenant string) {
	t.mu.Lock()
	listeners := t.listen[tenant]
	delete(t.listen, tenant)
	t.mu.Unlock()
	for l := range listeners {
		l.removed()
	}
}
