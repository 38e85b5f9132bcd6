package controlplane

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

func TestStandaloneServesWhatIsCreated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.stream("before", 1, true)
	b := c.broker("", true).start()
	cl := b.dial("t1")
	b.publish(cl, "before", "one")
	b.expect(cl, "before", "one")
	// What is created later comes by itself, and so does its namespace.
	_, err := c.of("t1").CreateNamespace(t.Context(), model.Namespace{TenantID: "t1", Namespace: "later"})
	must(t, err)
	c.stream("after", 2, true)
	c.cache("settings", 1)
	b.publish(cl, "after", "two")
	eventually(t, "cache", func() error { return put(t.Context(), cl.Cache("settings"), "k", "v") })
	if b.agent.Directory() != nil {
		t.Error("a broker that stands alone has a directory")
	}
}

func TestDeletionRemovesDataOfThatUIDOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	first := c.stream("orders", 1, true)
	b := c.broker("", true).start()
	cl := b.dial("t1")
	b.publish(cl, "orders", "old")
	must(t, c.of("t1").DeleteStream(t.Context(), first.Key()))
	second := c.stream("orders", 1, true)
	if first.UID == second.UID || first.UID == "" {
		t.Fatalf("uids %q and %q", first.UID, second.UID)
	}
	eventually(t, "the second stream", func() error {
		s, err := b.node.Core().Stream("t1", "default", "orders")
		if err == nil && s.Options().UID != second.UID {
			err = fmt.Errorf("uid is %s", s.Options().UID)
		}
		return err
	})
	b.publish(cl, "orders", "new")
	b.expect(cl, "orders", "new")
}

func TestRetentionReachesOpenLogs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	s := c.stream("orders", 1, true)
	b := c.broker("", true).start()
	cl := b.dial("t1")
	b.publish(cl, "orders", "one")
	bytes := uint64(4096)
	_, err := c.of("t1").PatchStream(t.Context(), s.Key(), model.StreamPatch{Retention: &model.Retention{MaxSizeBytes: &bytes}})
	must(t, err)
	eventually(t, "retention", func() error {
		s, err := b.node.Core().Stream("t1", "default", "orders")
		if err == nil && s.Options().Retention.MaxBytes != 4096 {
			err = errNotYet
		}
		return err
	})
	b.expect(cl, "orders", "one")
}

func TestDurableStreamWithoutStorageIsRefusedAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.stream("kept", 1, true)
	c.stream("passing", 1, false)
	b := c.broker("", false).start()
	cl := b.dial("t1")
	b.publish(cl, "passing", "one")
	if err := b.has("kept"); err == nil {
		t.Error("a durable stream is served from memory")
	}
	if got := b.agent.Stats().Mirror.Failed; got != 1 {
		t.Errorf("%d failures, want 1", got)
	}
}

func TestTwoBrokersShareTheShards(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	b1, b2 := c.broker("b1", true).start(), c.broker("b2", true)
	b2.ca = b1.ca
	b2.start()
	<-b1.agent.Joined()
	<-b2.agent.Joined()
	for i := range 4 {
		c.stream(fmt.Sprintf("s%d", i), 4, true)
	}
	active := func(b *brokerRig) (n int) {
		for _, st := range b.node.Core().ShardStates() {
			if st.State == placed.Active {
				n++
			}
		}
		return n
	}
	eventually(t, "shards on both", func() error {
		if one, two := active(b1), active(b2); one+two != 16 || one == 0 || two == 0 {
			return fmt.Errorf("%d and %d shards are active", one, two)
		}
		return nil
	})
	// A client of one is led to the other.
	cl := b1.dial("t1")
	eventually(t, "topology", func() error {
		brokers, err := cl.Topology(t.Context())
		if err == nil && len(brokers) != 2 {
			err = fmt.Errorf("brokers are %+v", brokers)
		}
		return err
	})
	owners, err := cl.ShardOwners(t.Context(), client.KindStream, "s0")
	must(t, err)
	seen := make(map[string]bool)
	for _, o := range owners {
		seen[o.NodeID] = true
		if o.Addr != b1.port && o.Addr != b2.port {
			t.Errorf("owner of shard %d is at %q", o.Shard, o.Addr)
		}
	}
	if len(owners) != 4 {
		t.Errorf("owners are %+v", owners)
	}
	nodes, err := c.admin.Nodes(t.Context(), apiclient.NodeFilter{})
	must(t, err)
	if len(nodes) != 2 || nodes[0].Node.Status.Lifecycle != model.Live {
		t.Errorf("nodes are %+v", nodes)
	}
}
