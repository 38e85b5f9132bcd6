package controlplane

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// TestAStoppingBrokerHandsOver: what is in memory goes to the other broker, a
// durable shard of one copy stays, and the control plane knows the node left.
func TestAStoppingBrokerHandsOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	b1 := c.broker("b1", true).start()
	<-b1.agent.Joined()
	c.stream("passing", 2, false)
	c.stream("kept", 1, true)
	eventually(t, "leads", func() error {
		if n := len(b1.agent.mirror.Leads()); n != 3 {
			return fmt.Errorf("b1 leads %d", n)
		}
		return nil
	})
	b2 := c.broker("b2", true)
	b2.ca = b1.ca
	b2.start()
	<-b2.agent.Joined()
	eventually(t, "b1 knows b2", func() error {
		if !b1.agent.directory.others() {
			return errNotYet
		}
		return nil
	})
	b1.stop()
	if !strings.Contains(b1.log.String(), "left=1") {
		t.Errorf("log of b1:\n%s", b1.log.String())
	}
	n, err := c.store.Node(t.Context(), "b1")
	must(t, err)
	if n.Status.Lifecycle != model.Left {
		t.Errorf("b1 is %s", n.Status.Lifecycle)
	}
	leads := make(map[string]string)
	all, err := c.store.Assignments(t.Context())
	must(t, err)
	for _, a := range all {
		leads[a.String()] = a.Leader
	}
	want := map[string]string{"t1/default/passing/0": "b2", "t1/default/passing/1": "b2", "t1/default/kept/0": "b1"}
	for shard, leader := range want {
		if leads[shard] != leader {
			t.Errorf("%s is led by %q, want %q", shard, leads[shard], leader)
		}
	}
	cl := b2.dial("t1")
	b2.publish(cl, "passing", "one")
	// It comes back to what it left.
	b1.start()
	<-b1.agent.Joined()
	again := b1.dial("t1")
	b1.publish(again, "kept", "two")
}

func TestASilentControlPlaneDelaysNoStop(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	b := c.broker("b1", true).start()
	<-b.agent.Joined()
	b2 := c.broker("b2", true)
	b2.ca = b.ca
	b2.start()
	<-b2.agent.Joined()
	c.stream("passing", 4, false)
	eventually(t, "leads", func() error {
		if len(b.agent.mirror.Leads()) == 0 || !b.agent.directory.others() {
			return errNotYet
		}
		return nil
	})
	stop(c.instances[0])
	b.agent.Drain(t.Context()) // it ends by itself
	if !strings.Contains(b.log.String(), "stopping without") {
		t.Errorf("log:\n%s", b.log.String())
	}
}
