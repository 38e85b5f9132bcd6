package node

import (
	"iter"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/transport"
)

// snapshot reads what the core counts, once a scrape.
func (n *Node) snapshot() telemetry.Snapshot {
	n.readiness.Check() // the gauge is as good as what is shown beside it
	st := n.core.Stats()
	var cluster telemetry.ClusterSnapshot
	if n.cluster != nil {
		cluster = n.cluster()
	}
	return telemetry.Snapshot{
		Cluster: cluster,
		Tenants: st.Tenants, Namespaces: st.Namespaces, Streams: st.Streams, Shards: st.Shards, Caches: st.Caches,
		InflightRequests:     n.sessions.Inflight(),
		PublishInflightBytes: st.InflightBytes,
		PublishQueued:        st.Publish.Queued,
		PublishQueueCapacity: st.Publish.Capacity,
		PublishWaiting:       st.Publish.Waiting,
		PublishInline:        st.Publish.Inline,
		PublishExecuted:      st.Publish.Executed,
		PublishFailed:        st.Failed,
		ExecutorPanics:       st.Publish.Panics,
		Subscriptions:        st.Subscribe.Subscriptions,
		SubEnqueued:          st.Subscribe.Enqueued,
		SubDequeued:          st.Subscribe.Dequeued,
		SubDroppedBatches:    st.Subscribe.DroppedBatches,
		SubDroppedRecords:    st.Subscribe.DroppedRecords,
		SubDropOldEmulated:   st.Subscribe.DropOldEmulated,
		SubBlocked:           st.Subscribe.Blocked,
		SubEncodes:           st.Subscribe.Encodes,
		PooledBytes:          st.Subscribe.PooledBytes,
		CacheEntries:         st.Cache.Entries,
		CacheBytes:           st.Cache.Bytes,
		CacheHits:            st.Cache.Hits,
		CacheMisses:          st.Cache.Misses,
		CachePuts:            st.Cache.Puts,
		CacheDeletes:         st.Cache.Deletes,
		CacheEvictions:       st.Cache.Evictions,
		CacheExpired:         st.Cache.Expired,
		TenantAccounts:       n.tenantAccounts(),
		Groups:               groupSnapshot(&st.Groups),
		Storage:              n.storageSnapshot(),
	}
}

func groupSnapshot(st *queue.Stats) telemetry.GroupSnapshot {
	return telemetry.GroupSnapshot{
		Groups: st.Groups, Waiting: st.Waiting, Claims: st.Claims, PollsCapped: st.PollsCapped, Trimmed: st.Trimmed,
		DeadLettered: st.DeadLettered, Redelivered: st.Redelivered, Lapsed: st.Lapsed,
	}
}

func (n *Node) tenantAccounts() iter.Seq2[string, telemetry.TenantAccount] {
	return func(yield func(string, telemetry.TenantAccount) bool) {
		for tenant, a := range n.core.TenantStats() {
			account := telemetry.TenantAccount{
				Messages: a.Messages, Bytes: a.Bytes,
				// A full byte budget is a full queue to an operator.
				QueueFullRefused: a.QueueFullRefused + a.BytesFullRefused,
				QueueFullDropped: a.QueueFullDropped + a.BytesFullDropped,
				ThrottledRefused: a.ThrottledRefused,
				ThrottledDropped: a.ThrottledDropped,
				ThrottledDelayed: a.ThrottledDelayed,
			}
			if !yield(tenant, account) {
				return
			}
		}
	}
}

// track includes a connection's carrier statistics in the metrics until done.
func (n *Node) track(conn transport.Conn) (done func()) {
	return n.metrics.QUIC.Track(func() telemetry.ConnStats {
		s := conn.Stats()
		return telemetry.ConnStats{
			SmoothedRTT: s.SmoothedRTT, MTU: s.MTU,
			PacketsSent: s.PacketsSent, PacketsReceived: s.PacketsReceived, PacketsLost: s.PacketsLost,
			BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
			GSO: s.GSO, GRO: s.GRO,
		}
	})
}
