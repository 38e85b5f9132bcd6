package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/model"
)

// work does one of everything that clients do.
func work(b *brokerRig, c *client.Client, sub *client.Subscription, n int) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	text := fmt.Sprintf("record-%d", n)
	if _, err := c.Publish(ctx, "orders", []byte(text)); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return fmt.Errorf("subscription: %w", err)
		}
		if string(e.Payload) == text {
			break
		}
	}
	if err := c.Cache("settings").Put(ctx, "k", []byte(text)); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if got, found, err := c.Cache("settings").Get(ctx, "k"); err != nil || !found || string(got) != text {
		return fmt.Errorf("get: %q, %t, %w", got, found, err)
	}
	group := c.Group("orders", "workers")
	jobs, err := group.Poll(ctx)
	if err != nil || len(jobs) == 0 {
		return fmt.Errorf("poll: %d records, %w", len(jobs), err)
	}
	for _, job := range jobs {
		if err := group.Ack(ctx, job.Claim); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return nil
}

// TestTheDataPlaneNeedsNoControlPlane: with every instance gone all goes on,
// new clients come in, and a broker that is restarted serves what it knew.
func TestTheDataPlaneNeedsNoControlPlane(t *testing.T) {
	for _, id := range []string{"", "b1"} {
		t.Run("node "+id, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			c.stream("orders", 1, true)
			c.cache("settings", 1)
			b := c.broker(id, true).start()
			cl := b.dial("t1")
			b.publish(cl, "orders", "first")
			sub, err := cl.Subscribe(t.Context(), "orders")
			must(t, err)
			eventually(t, "work", func() error { return work(b, cl, sub, 0) })
			for _, s := range c.instances {
				stop(s)
			}
			for i := range 20 {
				must(t, work(b, cl, sub, i+1))
			}
			other := b.dial("t1") // its token is verified with keys that are known
			must(t, work(b, other, sub, 100))
			must(t, sub.Close())

			b.stop()
			b.start()
			again := b.dial("t1")
			sub, err = again.Subscribe(t.Context(), "orders")
			must(t, err)
			eventually(t, "work after a restart", func() error { return work(b, again, sub, 200) })
			must(t, sub.Close())
			records, err := b.read(again, "orders")
			must(t, err)
			if len(records) < 23 || records[0] != "first" {
				t.Errorf("records are %q", records)
			}
			if !strings.Contains(b.log.String(), "serving what this broker knew") {
				t.Error("the log does not say that the broker serves what it knew")
			}

			// The control plane comes back, with what was deleted meanwhile.
			must(t, c.store.DeleteStream(t.Context(), model.StreamKey{TenantID: "t1", Namespace: "default", Stream: "orders"}))
			c.start(c.instances[0].Addr())
			eventually(t, "the deletion", func() error {
				if b.has("orders") == nil {
					return errNotYet
				}
				return nil
			})
		})
	}
}

// TestOneInstanceMoreOrLess: the end of one of two is noticed by nobody.
func TestOneInstanceMoreOrLess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	b := c.broker("b1", true).start()
	<-b.agent.Joined()
	stop(c.instances[0])
	s, err := c.store.StreamsSnapshot(t.Context())
	must(t, err)
	if len(s.Items) != 0 {
		t.Fatal("streams")
	}
	c.instances = c.instances[1:]
	c.stream("orders", 2, true)
	cl := b.dial("t1")
	b.publish(cl, "orders", "one")
	beats := b.agent.Stats().Membership.Heartbeats
	eventually(t, "heartbeats", func() error {
		if st := b.agent.Stats().Membership; st.Heartbeats < beats+3 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	if st := b.agent.Stats(); st.Membership.Registrations != 1 {
		t.Errorf("%+v", st)
	}
}

func TestWhatWasKnownIsDamaged(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.stream("orders", 1, true)
	b := c.broker("", true).start()
	cl := b.dial("t1")
	b.publish(cl, "orders", "kept")
	b.stop()
	file := filepath.Join(b.dir, StateFile)
	data, err := os.ReadFile(file)
	must(t, err)
	if strings.Contains(string(data), "eyJ") {
		t.Error("the file holds a token")
	}
	for name, damaged := range map[string][]byte{
		"cut":     data[:len(data)/2],
		"flipped": []byte(strings.Replace(string(data), `"orders"`, `"ordres"`, 1)),
		"empty":   {},
		"version": []byte(strings.Replace(string(data), `"version":1`, `"version":2`, 1)),
	} {
		if _, err := unseal(damaged); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	must(t, os.WriteFile(file, data[:len(data)/2], 0o600))
	b.start()
	again := b.dial("t1")
	b.expect(again, "orders", "kept")
	if !strings.Contains(b.log.String(), file) {
		t.Error("the log does not name the file")
	}
}
