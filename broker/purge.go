package broker

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
)

// ErrNoUID refuses to remove data that no uid names.
var ErrNoUID = errors.New("data is removed by the uid of its stream or cache, and none is named")

// PurgeStream removes from disk what all shards of a stream hold that belongs to
// uid: records, groups and dead letters. It counts those shards. Data of another
// uid, or of which nothing says whose it is, stays and is logged. A stream
// registered with that uid is removed first, as by [Broker.RemoveStream]; one
// with another uid goes on.
//
// Purging again removes nothing, and finishes what a crash or an error cut off
// (control plane 7.9). Errors: [ErrNoUID], *storage.InUseError for data that is
// served without its uid being known, storage.ErrClosed, the cause of ctx, and
// those of the file system.
func (b *Broker) PurgeStream(ctx context.Context, name StreamName, uid string) (removed int, err error) {
	if uid == "" {
		return 0, ErrNoUID
	}
	c := &b.catalog
	c.mu.Lock()
	s := c.streams[name]
	if s != nil && s.Options().UID == uid {
		delete(c.streams, name)
	} else {
		s = nil
	}
	c.mu.Unlock()
	if s != nil {
		s.End(stream.ErrRemoved)
	}
	if b.cfg.Storage == nil {
		return 0, nil
	}
	if err := b.hub.LetGo(ctx, name); err != nil {
		return 0, err
	}
	return b.cfg.Storage.Purge(ctx, storage.Target{
		Spaces: []storage.Space{storage.Streams, storage.Groups, storage.DeadLetters},
		Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, UID: uid,
	})
}

// PurgeCache is [Broker.PurgeStream] for the values and counters of a cache.
func (b *Broker) PurgeCache(ctx context.Context, name CacheName, uid string) (removed int, err error) {
	if uid == "" {
		return 0, ErrNoUID
	}
	c := &b.catalog
	c.mu.Lock()
	ca := c.caches[name]
	if ca != nil && ca.Options().UID == uid {
		delete(c.caches, name)
	} else {
		ca = nil
	}
	c.mu.Unlock()
	if ca != nil {
		ca.End()
	}
	if b.cfg.Storage == nil {
		return 0, nil
	}
	if err := b.caches.LetGo(ctx, name); err != nil {
		return 0, err
	}
	return b.cfg.Storage.Purge(ctx, storage.Target{
		Spaces: []storage.Space{storage.Caches, storage.Counters},
		Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name, UID: uid,
	})
}
