package client

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/wire"
)

// maxRoutes bounds the streams a client remembers the shards of.
const maxRoutes = 4096

type routeName struct{ namespace, stream string }

// A routeTable remembers, for each stream published to, its shards and the
// lane of each.
type routeTable struct {
	mu     sync.RWMutex
	routes map[routeName]*route
	lanes  atomic.Uint32 // made so far, to spread them over streams
}

// A route is one stream as publishers see it.
type route struct {
	c         *Client
	namespace string
	stream    string

	mu      sync.Mutex
	known   bool // shards and routing were learnt
	shards  uint32
	routing wire.Routing
	lanes   [2][]*lane // without and with acknowledgement, by shard
}

// route gives the route of a stream, checking its names.
func (c *Client) route(namespace, stream string) (*route, error) {
	if namespace == "" {
		namespace = c.cfg.namespace
	}
	name := routeName{namespace, stream}
	t := &c.routes
	t.mu.RLock()
	r := t.routes[name]
	t.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	if err := checkName("namespace", namespace); err != nil {
		return nil, err
	}
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.routes[name]; r != nil {
		return r, nil
	}
	if t.routes == nil {
		t.routes = make(map[routeName]*route)
	}
	if len(t.routes) >= maxRoutes {
		t.evict()
	}
	r = &route{c: c, namespace: namespace, stream: stream}
	t.routes[name] = r
	return r, nil
}

// all are the routes in the table.
func (t *routeTable) all() []*route {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.routes))
}

// evict forgets one route, preferably without anything under way.
func (t *routeTable) evict() {
	var victim routeName
	for name, r := range t.routes {
		victim = name
		if r.idle() {
			break
		}
	}
	delete(t.routes, victim)
}

func (r *route) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kind := range r.lanes {
		for _, l := range kind {
			if l != nil && !l.idle() {
				return false
			}
		}
	}
	return true
}

// lane gives the lane that records with this key take. Only keyed records
// need to know the shards, and ask once (wire 20.2); a broker that cannot be
// asked routes by itself, and then one lane keeps the order of every key.
func (r *route) lane(ctx context.Context, key []byte, keyed, acked bool) (*lane, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keyed && !r.known {
		if err := r.learn(ctx, acked); err != nil {
			return nil, err
		}
	}
	return r.laneOf(wire.ShardOf(key, keyed, r.shards, r.routing), acked), nil
}

// shardOf is the shard that records with this key go to, 0 where the broker
// cannot be asked for the stream's shards.
func (r *route) shardOf(ctx context.Context, key []byte, keyed bool) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keyed && !r.known {
		if err := r.learn(ctx, true); err != nil {
			return 0, err
		}
	}
	return wire.ShardOf(key, keyed, r.shards, r.routing), nil
}

// knownShards says whether the number of shards was learnt, and it.
func (r *route) knownShards() (known bool, shards uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known, r.shards
}

// learn asks for the stream's shards. mu is held, and released meanwhile.
func (r *route) learn(ctx context.Context, acked bool) error {
	r.mu.Unlock()
	shards, routing, err := r.c.streamShards(ctx, routeName{r.namespace, r.stream})
	r.mu.Lock()
	if err != nil && !isUnsupported(err) {
		return err
	}
	if shards == 0 || r.known {
		return nil
	}
	if shards > 1 {
		// What was sent while the shards were unknown took the first lane:
		// a record of the same key must not overtake it on another.
		first := r.laneOf(0, acked)
		r.mu.Unlock()
		err := first.settled(ctx)
		r.mu.Lock()
		if err != nil {
			return err
		}
	}
	r.known, r.shards, r.routing = true, min(shards, maxShards), routing
	return nil
}

// laneOf gives a shard's lane. mu is held.
func (r *route) laneOf(shard uint32, acked bool) *lane {
	kind := &r.lanes[0]
	if acked {
		kind = &r.lanes[1]
	}
	for int(shard) >= len(*kind) {
		*kind = append(*kind, nil)
	}
	l := (*kind)[shard]
	if l == nil {
		l = newLane(r, shard, acked, int(r.c.routes.lanes.Add(1)-1))
		(*kind)[shard] = l
	}
	return l
}

// forget makes the route ask for its shards again: the stream is gone, and
// may come back with others.
func (r *route) forget() {
	r.mu.Lock()
	r.known = false
	r.mu.Unlock()
}
