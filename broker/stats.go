package broker

import (
	"iter"
	"maps"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// Stats are a broker's totals.
type Stats struct {
	Tenants, Namespaces, Streams, Shards, Caches int
	// InflightBytes are taken of the process's byte budget.
	InflightBytes int64
	// Failed publishes were accepted and then not appended, because their
	// stream was removed, the broker closed or the publish panicked.
	Failed uint64
	// Publish describes the queue, Subscribe the streams and their
	// subscriptions, Cache the entries, Groups the claims.
	Publish   schedule.Stats
	Subscribe stream.Stats
	Cache     cache.Stats
	Groups    queue.Stats
}

// Stats reads the totals.
func (b *Broker) Stats() Stats {
	st := Stats{
		InflightBytes: b.budgets.InUse(),
		Failed:        b.failed.Load(),
		Publish:       b.queue.Stats(),
		Subscribe:     b.hub.Stats(),
		Cache:         b.caches.Stats(),
		Groups:        b.groups.Stats(),
	}
	c := &b.catalog
	c.mu.RLock()
	defer c.mu.RUnlock()
	st.Tenants, st.Namespaces = len(c.tenants), len(c.namespaces)
	st.Streams, st.Caches = len(c.streams), len(c.caches)
	for _, s := range c.streams {
		st.Shards += int(s.Shards())
	}
	return st
}

// TenantStats reads the publish accounts of all tenants.
func (b *Broker) TenantStats() iter.Seq2[string, admission.Stats] {
	b.catalog.mu.RLock()
	tenants := maps.Clone(b.catalog.tenants)
	b.catalog.mu.RUnlock()
	return func(yield func(string, admission.Stats) bool) {
		for name, t := range tenants {
			if !yield(name, t.account.Stats()) {
				return
			}
		}
	}
}

// Streams lists the registered streams, in no order.
func (b *Broker) Streams() []*stream.Stream {
	b.catalog.mu.RLock()
	defer b.catalog.mu.RUnlock()
	streams := make([]*stream.Stream, 0, len(b.catalog.streams))
	for _, s := range b.catalog.streams {
		streams = append(streams, s)
	}
	return streams
}
