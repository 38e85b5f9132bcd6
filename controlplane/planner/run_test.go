package planner

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

func TestWokenPlannerPlacesANewStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bubble(t)
		c.register("a")
		p := c.run()
		synctest.Wait()
		k := c.stream("s", 1, 1)
		p.Wake()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if c.leader(k) != "a" {
			t.Error("a new stream is not placed 100 ms after the wake")
		}
	})
}

// What another instance wrote is seen where the feeds are watched.
func TestWatchSeesWhatOthersWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := bubble(t)
		c.register("a")
		c.run(func(o *Options) { o.Watch = 50 * time.Millisecond })
		time.Sleep(time.Second)
		synctest.Wait()
		quiet := s.count()
		k := c.stream("s", 1, 1)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if c.leader(k) != "a" {
			t.Error("a stream of another instance is not placed after 100 ms")
		}
		if quiet != 1 {
			t.Errorf("%d passes while nothing changed", quiet)
		}
	})
}

// A pass that took longer than the period is followed by a full period.
func TestTimedPassesDoNotCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := bubble(t)
		s.slow = 7 * time.Second
		c.run()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		s.set(func() {
			if len(s.passes) != 4 {
				t.Fatalf("%d passes of 7 s in 40 s", len(s.passes))
			}
			for i := range s.passes[1:] {
				if pause := s.passes[i+1].Sub(s.ends[i]); pause != DefaultReconcile {
					t.Errorf("pass %d began %v after the one before ended", i+1, pause)
				}
			}
		})
	})
}

// Wakes during a pass are one pass, and a burst of wakes has half of the time.
func TestWakesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := bubble(t)
		s.slow = 100 * time.Millisecond
		p := c.run(func(o *Options) { o.Reconcile = time.Hour })
		time.Sleep(50 * time.Millisecond)
		for range 1000 {
			p.Wake()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.count(); n != 2 {
			t.Errorf("%d passes after a thousand wakes during the first", n)
		}
		for range 1000 {
			p.Wake()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := s.count() - 2; n > 6 {
			t.Errorf("%d passes of 100 ms for a second of wakes", n)
		}
	})
}

// Where another instance leads the group, a wake plans nothing here.
func TestOnlyWhoMayPlanPlansWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := bubble(t)
		s.may = false
		p := c.run(func(o *Options) { o.Reconcile = time.Hour })
		synctest.Wait()
		timed := s.count()
		p.Wake()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.count() != timed {
			t.Error("a wake planned where it must not")
		}
		s.set(func() { s.may = true })
		p.Wake()
		synctest.Wait()
		if s.count() != timed+1 {
			t.Error("a wake planned nothing where it may")
		}
	})
}

// A broker that falls silent is down after its lease and the margin, and what
// can go elsewhere goes at once.
func TestSilentBrokerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bubble(t)
		c.register("a", "b")
		k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: "s", Kind: model.StreamShard}
		c.create(model.Stream{Stream: "s", Shards: 1, ReplicationFactor: 1})
		c.put(model.Assignment{ShardKey: k, Leader: "a"})
		c.beat("b")
		var seen tally
		c.run(observed(&seen))
		time.Sleep(DefaultExpiry + DefaultExpiry/4)
		synctest.Wait()
		if n, _ := c.store().Node(c.ctx, "a"); n.Status.Lifecycle != model.Live || c.leader(k) != "a" {
			t.Fatalf("%s before the margin was over", n.Status.Lifecycle)
		}
		time.Sleep(DefaultSweep + 100*time.Millisecond)
		synctest.Wait()
		if n, _ := c.store().Node(c.ctx, "a"); n.Status.Lifecycle != model.Down {
			t.Errorf("the silent broker is %s", n.Status.Lifecycle)
		}
		if n, _ := c.store().Node(c.ctx, "b"); n.Status.Lifecycle != model.Live {
			t.Errorf("the other broker is %s", n.Status.Lifecycle)
		}
		if c.leader(k) != "b" {
			t.Errorf("the shard is on %s", c.leader(k))
		}
		if seen.of("expired") != 1 || seen.of("live to down") != 1 {
			t.Errorf("observed %v", seen.counts)
		}
	})
}

// While nobody could reach the control plane nobody could renew a lease: after
// that, brokers have a lease's time to come back.
func TestSweepWaitsForALeaseAfterAnOutage(t *testing.T) {
	for name, outage := range map[string]func(*moody, bool){
		"unreachable": func(s *moody, on bool) { s.down = on },
		"no leader":   func(s *moody, on bool) { s.may = !on },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := bubble(t)
				c.register("a")
				c.run()
				time.Sleep(10 * time.Second)
				s.set(func() { outage(s, true) })
				time.Sleep(time.Minute)
				s.set(func() { outage(s, false) })
				time.Sleep(DefaultExpiry - time.Second)
				synctest.Wait()
				if n, _ := c.store().Node(c.ctx, "a"); n.Status.Lifecycle != model.Live {
					t.Fatal("a broker was judged by an outage")
				}
				time.Sleep(2 * DefaultSweep)
				synctest.Wait()
				if n, _ := c.store().Node(c.ctx, "a"); n.Status.Lifecycle != model.Down {
					t.Error("the broker did not come back, and is not down")
				}
			})
		})
	}
}

// A store whose clock leaps, as that of a database that failed over to another
// machine, makes nobody silent: brokers count their leases on their own clocks.
func TestSweepWaitsForALeaseAfterALeapOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leap atomic.Int64
		s := memory.Open(memory.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(leap.Load())) }})
		c := &cluster{t: t, ctx: t.Context(), stores: []store.Store{s}, policy: testPolicy}
		lifecycle := func(id string) model.Lifecycle {
			n, err := s.Node(t.Context(), id)
			c.check(err)
			return n.Status.Lifecycle
		}
		c.register("a")
		c.beat("a")
		c.run()
		time.Sleep(time.Minute + time.Second/2)
		for range 3 {
			leap.Add(int64(6 * time.Second)) // more than the margin, and together than a lease
			time.Sleep(DefaultSweep)
		}
		leap.Add(int64(DefaultExpiry + DefaultHeartbeat))
		time.Sleep(DefaultHeartbeat)
		synctest.Wait()
		if lifecycle("a") != model.Live {
			t.Error("a broker that renews its lease is down, because the clock leapt")
		}
		c.register("silent")
		time.Sleep(2*DefaultExpiry + DefaultSweep)
		synctest.Wait()
		if lifecycle("a") != model.Live || lifecycle("silent") != model.Down {
			t.Errorf("a is %s and silent is %s", lifecycle("a"), lifecycle("silent"))
		}
	})
}

// A young cluster places a new shard when it has settled, at that time.
func TestSettledClusterPlansAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bubble(t)
		c.policy.SettleMillis = 12_000
		c.register("a")
		k := c.stream("s", 1, 3)
		c.beat("a")
		c.run()
		time.Sleep(11_900 * time.Millisecond)
		synctest.Wait()
		if c.leader(k) != "" {
			t.Fatal("placed before the cluster settled")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if c.leader(k) != "a" {
			t.Error("not placed when the cluster had settled")
		}
	})
}
