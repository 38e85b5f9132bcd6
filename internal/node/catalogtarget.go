package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/node/catalog"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/wire"
)

// FollowCatalog applies a catalog file to the node, and the keys in it to
// keys, and keeps following it until ctx ends. It returns once the file as it
// is now is applied.
func (n *Node) FollowCatalog(ctx context.Context, file string, keys *auth.StaticKeys) error {
	return followCatalog(ctx, file, &catalogTarget{core: n.core, keys: keys, tenants: n.metrics.Tenants, storage: n.store != nil}, telemetry.Module(n.log, "catalog"))
}

func followCatalog(ctx context.Context, file string, target *catalogTarget, logger *slog.Logger) error {
	watcher, err := catalog.Open(catalog.Options{
		File: file, Files: catalog.OSFiles{}, ValidateName: wire.ValidateName,
		Target: target, Logger: logger, Now: time.Now,
	})
	if err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(catalog.PollInterval)
		defer tick.Stop()
		watcher.Run(ctx, tick.C)
	}()
	return nil
}

// A catalogTarget is a broker and its keys as a catalog changes them.
type catalogTarget struct {
	core    *broker.Broker
	keys    *auth.StaticKeys
	tenants *telemetry.Tenants
	storage bool // the broker has logs
}

func (t *catalogTarget) AddTenant(tenant string) error { return t.core.AddTenant(tenant) }

func (t *catalogTarget) RemoveTenant(tenant string) error {
	t.tenants.Forget(tenant)
	return t.core.RemoveTenant(tenant)
}

func (t *catalogTarget) SetKeys(tenant string, keys []auth.Key) error {
	return t.keys.Set(tenant, keys)
}

func (t *catalogTarget) AddNamespace(tenant, namespace string) error {
	return t.core.AddNamespace(tenant, namespace)
}

func (t *catalogTarget) RemoveNamespace(tenant, namespace string) error {
	return t.core.RemoveNamespace(tenant, namespace)
}

func (t *catalogTarget) AddStream(tenant, namespace string, s catalog.Stream) error {
	policy := stream.DefaultPolicy
	if s.QueuePolicy != "" {
		var err error
		if policy, err = stream.ParseQueuePolicy(string(s.QueuePolicy)); err != nil {
			return err
		}
	}
	routing := wire.Modulo
	if s.Routing == catalog.JumpHash {
		routing = wire.JumpHash
	}
	name := broker.StreamName{Tenant: tenant, Namespace: namespace, Name: s.Name}
	return t.core.AddStream(name, broker.StreamOptions{
		Shards: s.Shards, Routing: uint8(routing), Durable: s.Durable, QueuePolicy: policy,
		Retention: stream.Retention{MaxBytes: s.Retention.MaxBytes, MaxAge: s.Retention.MaxAge},
	})
}

func (t *catalogTarget) RemoveStream(tenant, namespace, stream string) error {
	return t.core.RemoveStream(broker.StreamName{Tenant: tenant, Namespace: namespace, Name: stream})
}

func (t *catalogTarget) AddCache(tenant, namespace string, c catalog.Cache) error {
	name := broker.CacheName{Tenant: tenant, Namespace: namespace, Name: c.Name}
	durable := t.storage
	switch c.Backing {
	case catalog.OnLog:
		durable = true
	case catalog.InMemory:
		durable = false
	}
	return t.core.AddCache(name, broker.CacheOptions{Shards: c.Shards, Durable: durable})
}

func (t *catalogTarget) RemoveCache(tenant, namespace, cache string) error {
	return t.core.RemoveCache(broker.CacheName{Tenant: tenant, Namespace: namespace, Name: cache})
}
