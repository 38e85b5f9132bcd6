package planner

import (
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func TestHeadsOfFeeds(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a")
		c.stream("s", 1, 1)
		h, s := behindAll, c.stores[len(c.stores)-1]
		h.grown(c.ctx, s)
		if h != (heads{streams: 1, caches: 0, nodes: 1}) {
			t.Fatalf("the heads are %+v", h)
		}
		grew := func(what string, want bool) {
			t.Helper()
			if h.grown(c.ctx, s) != want {
				t.Errorf("%s: grown is not %v", what, want)
			}
		}
		grew("nothing", false)
		c.put(model.Assignment{ShardKey: c.stream("t", 1, 1), Leader: "a"})
		grew("a stream", true)
		c.check(c.store().CreateCache(c.ctx, model.Cache{TenantID: "t", Namespace: "ns", Cache: "c", Shards: 1, ReplicationFactor: 1, UID: "c"}))
		grew("a cache", true)
		c.lifecycle("a", model.Draining)
		grew("a node", true)
		_, err := c.store().Heartbeat(c.ctx, "a", 0)
		c.check(err)
		grew("a heartbeat", false)
	})
}
