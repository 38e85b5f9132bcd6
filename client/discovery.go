package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/wire"
)

// A Broker is one broker of a cluster.
type Broker struct {
	NodeID string
	// Addr is "host:port" of its client listener.
	Addr string
}

// A Routing is how a stream maps keys to shards (wire 14).
type Routing string

const (
	// Modulo is the hash of the key modulo the number of shards.
	Modulo Routing = "modulo"
	// JumpHash is the jump consistent hash.
	JumpHash Routing = "jump_hash"
)

// A Kind is what shards belong to.
type Kind string

// The kinds.
const (
	KindStream Kind = "stream"
	KindCache  Kind = "cache"
)

// A ShardOwner tells who serves a shard.
type ShardOwner struct {
	Shard uint32
	// NodeID and Addr are empty when the broker does not tell: outside a
	// cluster, and for a shard nobody serves.
	NodeID, Addr string
	// Generation is that of the assignment.
	Generation uint64
	// Unavailable says why nobody serves the shard; empty when somebody does.
	Unavailable string
}

// Topology asks for the brokers of the cluster and adds them to the
// endpoints. Brokers outside a cluster do not know the request
// ([ErrUnsupported]).
func (c *Client) Topology(ctx context.Context) ([]Broker, error) {
	var out []Broker
	err := c.retry(ctx, true, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		out, err = c.topologyOf(ctx, b)
		return err
	})
	return out, err
}

func (c *Client) topologyOf(ctx context.Context, b *broker) ([]Broker, error) {
	view, err := ask[*wire.TopologyView](ctx, b, "topology", wire.FeatureTopology, "TOPOLOGY", &wire.Topology{})
	if err != nil {
		return nil, err
	}
	out := make([]Broker, 0, len(view.Brokers))
	for _, broker := range view.Brokers {
		out = append(out, Broker{NodeID: broker.NodeID, Addr: broker.Addr})
		if broker.Addr != "" {
			c.endpoints.add(c, broker.Addr)
		}
	}
	return out, nil
}

// StreamShards tells how many shards a stream has and how keys map to them.
// An unknown stream is [ErrNotFound].
func (c *Client) StreamShards(ctx context.Context, stream string, opts ...LookupOption) (shards uint32, routing Routing, err error) {
	name, err := c.lookupName("stream", stream, opts)
	if err != nil {
		return 0, "", err
	}
	n, r, err := c.streamShards(ctx, name)
	if err == nil && n == 0 {
		err = notFound("stream shards", "stream", c.cfg.tenant, name)
	}
	if err != nil {
		return 0, "", err
	}
	return n, Routing(r.String()), nil
}

// streamShards is 0 for an unknown stream.
func (c *Client) streamShards(ctx context.Context, name routeName) (n uint32, routing wire.Routing, err error) {
	err = c.retry(ctx, true, func(ctx context.Context) error {
		n, routing, err = c.askStreamShards(ctx, name)
		return err
	})
	return n, routing, err
}

// askStreamShards is one attempt of streamShards.
func (c *Client) askStreamShards(ctx context.Context, name routeName) (uint32, wire.Routing, error) {
	b, err := c.broker(ctx)
	if err != nil {
		return 0, 0, err
	}
	view, err := ask[*wire.StreamShardsView](ctx, b, "stream shards", wire.FeatureStreamShards, "STREAM_SHARDS", &wire.StreamShards{
		Tenant: c.cfg.tenant, Namespace: name.namespace, Stream: name.stream, RequestID: c.ids.Add(1),
	})
	if err != nil {
		return 0, 0, err
	}
	return view.Shards, view.Routing, nil
}

// CacheShards tells how many shards a cache has. An unknown cache is
// [ErrNotFound].
func (c *Client) CacheShards(ctx context.Context, cache string, opts ...LookupOption) (uint32, error) {
	name, err := c.lookupName("cache", cache, opts)
	if err != nil {
		return 0, err
	}
	var n uint32
	err = c.retry(ctx, true, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		view, err := ask[*wire.CacheShardsView](ctx, b, "cache shards", wire.FeatureCacheShards, "CACHE_SHARDS", &wire.CacheShards{
			Tenant: c.cfg.tenant, Namespace: name.namespace, Cache: name.stream, RequestID: c.ids.Add(1),
		})
		if err == nil {
			n = view.Shards
		}
		return err
	})
	if err == nil && n == 0 {
		err = notFound("cache shards", "cache", c.cfg.tenant, name)
	}
	return n, err
}

// ShardOwners lists who serves the shards of a stream or cache, in shard
// order. An unknown name is [ErrNotFound].
func (c *Client) ShardOwners(ctx context.Context, kind Kind, name string, opts ...LookupOption) ([]ShardOwner, error) {
	full, err := c.lookupName(string(kind), name, opts)
	if err != nil {
		return nil, err
	}
	request := &wire.ShardOwners{
		Tenant: c.cfg.tenant, Namespace: full.namespace, Name: full.stream, Kind: wire.KindStream, RequestID: c.ids.Add(1),
	}
	switch kind {
	case KindStream:
	case KindCache:
		request.Kind = wire.KindCache
	default:
		return nil, fmt.Errorf("shard owners: no such kind %q", kind)
	}
	var out []ShardOwner
	err = c.retry(ctx, true, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		view, err := ask[*wire.ShardOwnersView](ctx, b, "shard owners", wire.FeatureShardOwners, "SHARD_OWNERS", request)
		if err != nil {
			return err
		}
		out = out[:0]
		for _, o := range view.Owners {
			out = append(out, ShardOwner{
				Shard: o.Shard, NodeID: o.NodeID.Or(""), Addr: o.Addr.Or(""),
				Generation: o.Generation, Unavailable: o.Unavailable.Or(""),
			})
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = notFound("shard owners", string(kind), c.cfg.tenant, full)
	}
	return out, err
}

// lookupName completes and checks the name a discovery call is about.
func (c *Client) lookupName(kind, name string, opts []LookupOption) (routeName, error) {
	var o lookupOptions
	for _, opt := range opts {
		o = opt.applyLookup(o)
	}
	full := routeName{o.namespace, name}
	if full.namespace == "" {
		full.namespace = c.cfg.namespace
	}
	return full, errors.Join(checkName("namespace", full.namespace), checkName(kind, name))
}

func notFound(op, kind, tenant string, name routeName) *Error {
	return &Error{
		Op: op, Code: CodeNotFound, Retry: RetryLater,
		Message: fmt.Sprintf("%s not found: tenant=%s namespace=%s %s=%s", kind, tenant, name.namespace, kind, name.stream),
	}
}

// ask sends one request that only reads to b, on a stream of its own, if b
// advertises the feature it needs.
func ask[A wire.Message](ctx context.Context, b *broker, op string, feature wire.Features, name string, request wire.Message) (A, error) {
	var none A
	cn, caps, err := b.connect(ctx)
	if err != nil {
		return none, err
	}
	if err := caps.require(feature, name, b.addr); err != nil {
		return none, err
	}
	m, err := cn.exchange(ctx, op, name, request, RetryNow)
	if err != nil {
		return none, err
	}
	answer, ok := m.(A)
	if !ok {
		return none, unexpectedAnswer(op, b.addr, m)
	}
	return answer, nil
}

func unexpectedAnswer(op, addr string, m wire.Message) *Error {
	return &Error{Op: op, Retry: RetryUnspecified, Broker: addr, Message: "unexpected " + m.MessageType() + " in answer"}
}

func isUnsupported(err error) bool { return errors.Is(err, ErrUnsupported) }
