package controlplane

import (
	"context"
	"math"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/wire"
)

// A target is the broker core as the mirror changes it.
type target struct {
	core *broker.Broker
	// placed says that shards are served as assigned; without membership the
	// broker serves them all.
	placed bool
	// storage says that the broker has logs, on which caches are then kept.
	storage bool
	// gone hears of a tenant that goes.
	gone func(tenant string)
}

func (t *target) AddTenant(tenant string) error { return t.core.AddTenant(tenant) }

func (t *target) RemoveTenant(tenant string) error {
	t.gone(tenant)
	return t.core.RemoveTenant(tenant)
}

func (t *target) AddNamespace(k model.NamespaceKey) error {
	return t.core.AddNamespace(k.TenantID, k.Namespace)
}

func (t *target) RemoveNamespace(k model.NamespaceKey) error {
	return t.core.RemoveNamespace(k.TenantID, k.Namespace)
}

// AddStream serves a stream; a durable one needs storage and is never taken for
// one in memory.
func (t *target) AddStream(s model.Stream) error {
	routing := wire.Modulo
	if s.Routing == model.JumpHash {
		routing = wire.JumpHash
	}
	return t.core.AddStream(streamName(s.Key()), broker.StreamOptions{
		Shards: s.Shards, Routing: uint8(routing), Durable: s.Durable, Retention: retention(s),
		UID: s.UID, Placed: t.placed, Copies: s.ReplicationFactor,
	})
}

// retention is what the logs keep; a stream in memory has none.
func retention(s model.Stream) stream.Retention {
	var r stream.Retention
	if !s.Durable {
		return r
	}
	if bytes := s.Retention.MaxSizeBytes; bytes != nil {
		r.MaxBytes = int64(min(*bytes, math.MaxInt64))
	}
	if secs := s.Retention.MaxAgeSeconds; secs != nil {
		r.MaxAge = time.Duration(min(*secs, math.MaxInt64/uint64(time.Second))) * time.Second
	}
	return r
}

func (t *target) RemoveStream(k model.StreamKey) error { return t.core.RemoveStream(streamName(k)) }

func (t *target) AddCache(c model.Cache) error {
	return t.core.AddCache(cacheName(c.Key()), broker.CacheOptions{
		Shards: c.Shards, Durable: t.storage, UID: c.UID, Placed: t.placed, Copies: c.ReplicationFactor,
	})
}

func (t *target) RemoveCache(k model.CacheKey) error { return t.core.RemoveCache(cacheName(k)) }

func (t *target) Purge(ctx context.Context, d model.Tombstone) (removed int, err error) {
	if d.Kind == model.CacheShard {
		return t.core.PurgeCache(ctx, broker.CacheName{Tenant: d.TenantID, Namespace: d.Namespace, Name: d.Name}, d.UID)
	}
	return t.core.PurgeStream(ctx, broker.StreamName{Tenant: d.TenantID, Namespace: d.Namespace, Name: d.Name}, d.UID)
}

func (t *target) Assign(k model.ShardKey, generation uint64) error {
	return t.core.Assign(shardID(k), generation)
}

func (t *target) Unassign(k model.ShardKey, generation uint64, reason string) error {
	return t.core.Unassign(shardID(k), generation, reason)
}

func (t *target) Release(k model.ShardKey, reason string) error {
	return t.core.Release(shardID(k), reason)
}

func streamName(k model.StreamKey) broker.StreamName {
	return broker.StreamName{Tenant: k.TenantID, Namespace: k.Namespace, Name: k.Stream}
}

func cacheName(k model.CacheKey) broker.CacheName {
	return broker.CacheName{Tenant: k.TenantID, Namespace: k.Namespace, Name: k.Cache}
}

func shardID(k model.ShardKey) broker.ShardID {
	kind := broker.KindStream
	if k.Kind == model.CacheShard {
		kind = broker.KindCache
	}
	return broker.ShardID{Kind: kind, Tenant: k.TenantID, Namespace: k.Namespace, Name: k.Stream, Shard: k.Shard}
}
