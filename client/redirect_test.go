package client

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/wire"
)

// refusing answers every publish with "not the leader" and who is.
func refusing(owner func() (node, addr string), asked *atomic.Int64) func(s *peerStream) {
	return func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			asked.Add(1)
			ack := s.auth.Offer().FailedAck(m.RequestID, wire.Failure{Code: wire.CodeNotLeader, Message: "not the leader of this shard"})
			ack.HasOwner, ack.OwnerGeneration = true, 3
			ack.OwnerNode, ack.OwnerAddr = owner()
			s.ack(ack)
		}
	}
}

// Publishes that a broker refuses for another's shard go there, in their order,
// and those behind them go there at once.
func TestPublishesFollowRedirects(t *testing.T) {
	const n = 100
	var mu sync.Mutex
	var got []string
	owner := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			mu.Lock()
			got = append(got, string(m.Block[8:]))
			mu.Unlock()
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	var asked atomic.Int64
	entry := newPeer(t, refusing(func() (string, string) { return "b", owner.addr() }, &asked))
	c := dial(t, []string{entry.addr()})
	pub := c.Publisher("s")
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("%03d", i))
		if _, err := pub.Send(testContext(t), []byte(want[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(testContext(t), "s", []byte("last")); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want = append(want, "last"); !slices.Equal(got, want) {
		t.Errorf("the owner got %d records, in another order than they were sent: %v", len(got), got)
	}
	if a := asked.Load(); a == 0 || a > n {
		t.Errorf("the entry broker was asked %d times", a)
	}
}

// A redirect that leads in a circle, or nowhere, ends as a refusal.
func TestPublishRedirectsEnd(t *testing.T) {
	var asked [2]atomic.Int64
	var brokers [2]*peer
	nowhere := atomic.Bool{}
	for i := range brokers {
		brokers[i] = newPeer(t, refusing(func() (string, string) {
			if nowhere.Load() {
				return "b", ""
			}
			return "b", brokers[1-i].addr()
		}, &asked[i]))
	}
	c := dial(t, []string{brokers[0].addr()})
	if _, err := c.Publish(testContext(t), "s", []byte("x")); !hasCode(err, CodeNotLeader) {
		t.Errorf("a circle: %v", err)
	}
	if all := asked[0].Load() + asked[1].Load(); all < 2 || all > maxHops+2 {
		t.Errorf("asked %d times in a circle", all)
	}
	nowhere.Store(true)
	if _, err := c.Publish(testContext(t), "s", []byte("x")); !hasCode(err, CodeNotLeader) {
		t.Errorf("nowhere: %v", err)
	}
}

// Requests about caches and counters go where they are redirected, and one that
// is sent once is applied once.
func TestCacheRequestsFollowRedirects(t *testing.T) {
	st := newStore()
	var adds atomic.Int64
	owner := newPeer(t, func(s *peerStream) {
		for {
			m := s.message()
			switch m := m.(type) {
			case nil:
				s.CloseWrite()
				return
			case *wire.CounterAdd:
				s.send(&wire.CounterValue{RequestID: m.RequestID, Value: wire.Some(adds.Add(1))})
			default:
				s.send(st.answer(m))
			}
		}
	})
	var to atomic.Pointer[string]
	addr := owner.addr()
	to.Store(&addr)
	entry := newPeer(t, func(s *peerStream) {
		for s.message() != nil {
			s.send(notLeader("b", *to.Load()))
		}
		s.CloseWrite()
	})
	c := dial(t, []string{entry.addr()}, WithReconnect(ReconnectPolicy{Attempts: 1}))
	ctx := testContext(t)
	cache := c.Cache("users")
	if err := cache.Put(ctx, "ada", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if v, _, err := cache.Get(ctx, "ada"); err != nil || string(v) != "1" {
		t.Errorf("got %q, %v", v, err)
	}
	if n, err := cache.CounterAdd(ctx, "logins", 1); err != nil || n != 1 || adds.Load() != 1 {
		t.Errorf("counted %d, %v; applied %d times", n, err, adds.Load())
	}
	circle := entry.addr()
	to.Store(&circle)
	if _, _, err := cache.Get(ctx, "ada"); !hasCode(err, CodeNotLeader) {
		t.Errorf("a circle: %v", err)
	}
}
