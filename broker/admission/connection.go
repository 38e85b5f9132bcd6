package admission

import (
	"context"
	"sync"
)

// Limits are the sizes of the byte budgets.
type Limits struct {
	// IdentityBytes bounds one identity on one connection, ConnectionBytes
	// one connection, ProcessBytes the broker.
	IdentityBytes, ConnectionBytes, ProcessBytes int64
}

// Budgets are the byte budgets of a broker.
type Budgets struct {
	limits  Limits
	process budget
}

// NewBudgets returns empty budgets.
func NewBudgets(l Limits) *Budgets {
	return &Budgets{limits: l, process: budget{limit: l.ProcessBytes}}
}

// InUse is how many bytes of the process budget are taken.
func (b *Budgets) InUse() int64 { return b.process.inUse() }

// A Connection is one peer's share of the budgets.
type Connection struct {
	budgets *Budgets
	total   budget

	mu         sync.Mutex
	identities map[identityKey]*Identity
	closed     bool
}

type identityKey struct{ tenant, subject string }

// NewConnection opens a peer's budget.
func (b *Budgets) NewConnection() *Connection {
	return &Connection{
		budgets:    b,
		total:      budget{limit: b.limits.ConnectionBytes},
		identities: make(map[identityKey]*Identity),
	}
}

// An Identity is a tenant's token subject on one connection. Its streams share
// one budget.
type Identity struct {
	conn *Connection
	key  identityKey
	refs int // guarded by the connection's lock
	own  budget
}

// Identity returns the identity of a stream that authenticated as subject of
// tenant. Close it with the stream.
func (c *Connection) Identity(tenant, subject string) *Identity {
	key := identityKey{tenant, subject}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.identities[key]
	if id == nil {
		id = &Identity{conn: c, key: key, own: budget{limit: c.budgets.limits.IdentityBytes}}
		id.own.closed = c.closed
		c.identities[key] = id
	}
	id.refs++
	return id
}

// Close refuses what the peer still wants to publish. What is on its way goes
// on.
func (c *Connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.total.close()
	for _, id := range c.identities {
		id.own.close()
	}
}

// InUse is how many bytes of the connection's budget are taken.
func (c *Connection) InUse() int64 { return c.total.inUse() }

// Tenant is whose identity it is.
func (id *Identity) Tenant() string { return id.key.tenant }

// InUse is how many bytes of the identity's budget are taken.
func (id *Identity) InUse() int64 { return id.own.inUse() }

// Close says that one stream of the identity has ended.
func (id *Identity) Close() {
	id.conn.mu.Lock()
	defer id.conn.mu.Unlock()
	if id.refs--; id.refs == 0 {
		delete(id.conn.identities, id.key)
	}
}

// A Hold is bytes taken from all three budgets. The zero Hold holds nothing.
type Hold struct {
	id *Identity
	n  int64
}

// TryHold takes n bytes from all budgets, or none.
func (id *Identity) TryHold(n int64) (Hold, bool) {
	if !id.own.tryAcquire(n) {
		return Hold{}, false
	}
	if !id.conn.total.tryAcquire(n) {
		id.own.release(n)
		return Hold{}, false
	}
	if !id.conn.budgets.process.tryAcquire(n) {
		id.conn.total.release(n)
		id.own.release(n)
		return Hold{}, false
	}
	return Hold{id, n}, true
}

// Hold takes n bytes from all budgets, waiting for each in turn until ctx
// ends, whose cause it then returns.
func (id *Identity) Hold(ctx context.Context, n int64) (Hold, error) {
	if err := id.own.acquire(ctx, n); err != nil {
		return Hold{}, err
	}
	if err := id.conn.total.acquire(ctx, n); err != nil {
		id.own.release(n)
		return Hold{}, err
	}
	if err := id.conn.budgets.process.acquire(ctx, n); err != nil {
		id.conn.total.release(n)
		id.own.release(n)
		return Hold{}, err
	}
	return Hold{id, n}, nil
}

// Release gives the bytes back, once.
func (h Hold) Release() {
	if h.id == nil {
		return
	}
	h.id.conn.budgets.process.release(h.n)
	h.id.conn.total.release(h.n)
	h.id.own.release(h.n)
}
