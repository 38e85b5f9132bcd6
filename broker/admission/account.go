package admission

import (
	"sync/atomic"
	"time"
)

// An Account is what one tenant may publish and what it did.
type Account struct {
	tenant  string
	limited bool
	meter   meter

	messages, bytes                atomic.Uint64
	queueRefused, queueDropped     atomic.Uint64
	bytesRefused, bytesDropped     atomic.Uint64
	throttleRefused, throttleDrops atomic.Uint64
	throttleDelayed                atomic.Uint64
}

// NewAccount opens an account with full buckets that hold burst's worth of the
// quota's rates.
func NewAccount(tenant string, q Quota, burst time.Duration, now time.Time) *Account {
	a := &Account{tenant: tenant, limited: q.BytesPerSec > 0 || q.MessagesPerSec > 0}
	a.meter.start = now
	a.meter.bytes = bucket{perSec: max(q.BytesPerSec, 0), burst: burst}
	a.meter.messages = bucket{perSec: max(q.MessagesPerSec, 0), burst: burst}
	return a
}

// Tenant is whose account it is.
func (a *Account) Tenant() string { return a.tenant }

// Limited says that there is a quota to ask.
func (a *Account) Limited() bool { return a.limited }

// Take charges a batch to the quota. A positive answer means that nothing was
// charged and how long it takes until it may be.
func (a *Account) Take(now time.Time, bytes, messages int64) time.Duration {
	if !a.limited {
		return 0
	}
	return a.meter.take(now, bytes, messages)
}

// Refund undoes a Take whose batch was refused afterwards.
func (a *Account) Refund(bytes, messages int64) {
	if a.limited {
		a.meter.refund(bytes, messages)
	}
}

// Admitted counts a batch that got into the queue or ran at once.
func (a *Account) Admitted(bytes, messages int64) {
	a.messages.Add(uint64(messages))
	a.bytes.Add(uint64(bytes))
}

// An Action is what happened to a publish that could not go on at once.
type Action uint8

const (
	// Refused: the publisher was told.
	Refused Action = iota
	// Dropped: it was not.
	Dropped
	// Delayed: it waited.
	Delayed
)

// Count records an overload of the tenant.
func (a *Account) Count(r Reason, action Action) {
	switch {
	case r == TenantQuota && action == Delayed:
		a.throttleDelayed.Add(1)
	case r == TenantQuota && action == Dropped:
		a.throttleDrops.Add(1)
	case r == TenantQuota && action == Refused:
		a.throttleRefused.Add(1)
	case r == QueueFull && action == Dropped:
		a.queueDropped.Add(1)
	case r == QueueFull && action == Refused:
		a.queueRefused.Add(1)
	case r == BytesFull && action == Dropped:
		a.bytesDropped.Add(1)
	case r == BytesFull && action == Refused:
		a.bytesRefused.Add(1)
	}
}

// Stats are a tenant's publishes since its account was opened.
type Stats struct {
	// Messages and Bytes (of payload) were admitted.
	Messages, Bytes uint64
	// Publishes that found no slot, no bytes, or exceeded the quota.
	QueueFullRefused, QueueFullDropped                   uint64
	BytesFullRefused, BytesFullDropped                   uint64
	ThrottledRefused, ThrottledDropped, ThrottledDelayed uint64
}

// Stats reads the account.
func (a *Account) Stats() Stats {
	return Stats{
		Messages: a.messages.Load(), Bytes: a.bytes.Load(),
		QueueFullRefused: a.queueRefused.Load(), QueueFullDropped: a.queueDropped.Load(),
		BytesFullRefused: a.bytesRefused.Load(), BytesFullDropped: a.bytesDropped.Load(),
		ThrottledRefused: a.throttleRefused.Load(), ThrottledDropped: a.throttleDrops.Load(),
		ThrottledDelayed: a.throttleDelayed.Load(),
	}
}
