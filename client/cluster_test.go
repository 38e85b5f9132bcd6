package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func TestTopologyAddsEndpoints(t *testing.T) {
	var asked atomic.Int64
	p := newPeer(t, func(s *peerStream) {
		if _, ok := s.message().(*wire.Topology); !ok {
			return
		}
		asked.Add(1)
		s.send(&wire.TopologyView{Brokers: []wire.TopologyBroker{{NodeID: "a", Addr: "10.0.0.1:7000"}, {NodeID: "b", Addr: ""}, {NodeID: "c", Addr: "10.0.0.3:7000"}}})
		s.CloseWrite()
	})
	p.setAnswer(offering(wire.KnownFlags, wire.KnownFeatures))
	c := dial(t, []string{p.addr()})
	want := []string{p.addr(), "10.0.0.1:7000", "10.0.0.3:7000"}
	if got := c.Endpoints(); !slices.Equal(got, want) {
		t.Errorf("endpoints %v, want %v", got, want)
	}
	brokers, err := c.Topology(testContext(t))
	if err != nil || len(brokers) != 3 || brokers[0] != (Broker{NodeID: "a", Addr: "10.0.0.1:7000"}) {
		t.Errorf("topology %v, %v", brokers, err)
	}
	if asked.Load() != 2 || len(c.Endpoints()) != 3 {
		t.Errorf("asked %d times, endpoints %v", asked.Load(), c.Endpoints())
	}
}

func TestLookups(t *testing.T) {
	p := newPeer(t, func(s *peerStream) {
		switch m := s.message().(type) {
		case *wire.StreamShards:
			if m.Stream == "none" {
				s.send(&wire.StreamShardsView{RequestID: m.RequestID})
			} else {
				s.send(&wire.StreamShardsView{Shards: 8, RequestID: m.RequestID, Routing: wire.JumpHash})
			}
		case *wire.CacheShards:
			s.send(&wire.CacheShardsView{Shards: 3, RequestID: m.RequestID})
		case *wire.ShardOwners:
			if m.Kind == wire.KindCache {
				s.send(&wire.Unsupported{RequestType: "shard_owners"})
			} else {
				s.send(&wire.ShardOwnersView{RequestID: m.RequestID, Owners: []wire.ShardOwner{
					{Shard: 0, NodeID: wire.Some("a"), Addr: wire.Some("h:1"), Generation: 4},
					{Shard: 1, Unavailable: wire.Some("not_assigned")},
				}})
			}
		}
		s.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	if n, r, err := c.StreamShards(ctx, "s"); n != 8 || r != JumpHash || err != nil {
		t.Errorf("stream shards: %d %s %v", n, r, err)
	}
	if _, _, err := c.StreamShards(ctx, "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown stream: %v", err)
	}
	if n, err := c.CacheShards(ctx, "k", InNamespace("n")); n != 3 || err != nil {
		t.Errorf("cache shards: %d %v", n, err)
	}
	owners, err := c.ShardOwners(ctx, KindStream, "s")
	want := []ShardOwner{{Shard: 0, NodeID: "a", Addr: "h:1", Generation: 4}, {Shard: 1, Unavailable: "not_assigned"}}
	if err != nil || !slices.Equal(owners, want) {
		t.Errorf("owners: %v %v", owners, err)
	}
	if _, err := c.ShardOwners(ctx, KindCache, "k"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("answered unsupported: %v", err)
	}
	if _, err := c.Topology(ctx); !errors.Is(err, ErrUnsupported) {
		t.Errorf("not advertised: %v", err)
	}
	p.setAnswer(legacy)
	p.cut()
	if _, _, err := c.StreamShards(ctx, "s"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("legacy: %v", err)
	}
}

func notLeader(node, addr string) *wire.NotLeader {
	m := &wire.NotLeader{NodeID: node, Generation: 1}
	if addr != "" {
		m.Addr = wire.Some(addr)
	}
	return m
}

func TestSubscribeFollowsRedirects(t *testing.T) {
	const hops = 3
	var brokers []*peer
	var to [hops + 2]atomic.Pointer[string]
	for i := range to {
		brokers = append(brokers, subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
			wantStart(t, n, m, wire.StartAt(9))
			if addr := to[i].Load(); addr != nil {
				s.send(notLeader(fmt.Sprint(i), *addr))
				s.next()
				s.CloseWrite()
				return
			}
			s.events(durableAt(9, 9)).batch(9, 0, fmt.Sprint("from ", i))
		}))
	}
	point := func(from, at int) {
		addr := brokers[at].addr()
		to[from].Store(&addr)
	}
	for i := range hops {
		point(i, i+1)
	}
	c := dial(t, []string{brokers[0].addr()}, WithReconnect(ReconnectPolicy{Attempts: 1}))
	sub, err := c.Subscribe(testContext(t), "s", From(Offset(9)))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, sub, fmt.Sprint("from ", hops), 9, 0)
	sub.Close()

	// One hop more is one too many, and so is a circle.
	point(hops, hops+1)
	if _, err := c.Subscribe(testContext(t), "s", From(Offset(9))); !hasCode(err, CodeNotLeader) || !IsRetryable(err) {
		t.Errorf("four hops: %v", err)
	}
	point(1, 0)
	if _, err := c.Subscribe(testContext(t), "s", From(Offset(9))); !hasCode(err, CodeNotLeader) {
		t.Errorf("circle: %v", err)
	}
	none := ""
	to[0].Store(&none)
	if _, err := c.Subscribe(testContext(t), "s", From(Offset(9))); !hasCode(err, CodeNotLeader) {
		t.Errorf("owner without an address: %v", err)
	}
}

func hasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ownerPair is an entry broker that forwards publishes and names the owner,
// and the owner.
func TestPublishesGoToTheOwnerThatAcksName(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(where string, m *wire.Publish) {
		mu.Lock()
		got = append(got, where+string(m.Block[8:]))
		mu.Unlock()
	}
	var refuse atomic.Bool
	owner := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			if refuse.Load() {
				s.ack(s.auth.Offer().FailedAck(m.RequestID, wire.Failure{Code: wire.CodeShardUnavailable, Message: "moved away"}))
				continue
			}
			note("owner ", m)
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	entry := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			note("entry ", m)
			a := wire.Ack{RequestID: m.RequestID}
			if !refuse.Load() {
				a.HasOwner, a.OwnerNode, a.OwnerAddr, a.OwnerGeneration = true, "b", owner.addr(), 5
			}
			s.ack(a)
		}
	})
	c := dial(t, []string{entry.addr()})
	ctx := testContext(t)
	ack, err := c.Publish(ctx, "s", []byte("1"))
	if err != nil || ack.Owner == nil || ack.Owner.NodeID != "b" || ack.Owner.Generation != 5 {
		t.Fatalf("ack %+v, %v", ack, err)
	}
	pub := c.Publisher("s")
	for i := range 3 {
		if _, err := pub.Send(ctx, fmt.Append(nil, i+2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	// The owner does not serve the shard any longer: one try through the
	// entry broker.
	refuse.Store(true)
	if _, err := c.Publish(ctx, "s", []byte("5")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(ctx, "s", []byte("6")); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"entry 1", "owner 2", "owner 3", "owner 4", "entry 5", "entry 6"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSwitchingToTheOwnerKeepsOrder streams batches while acks begin to name
// the owner.
func TestSwitchingToTheOwnerKeepsOrder(t *testing.T) {
	const n = 200
	var mu sync.Mutex
	var got []string
	serve := func(owner func() string) func(s *peerStream) {
		return func(s *peerStream) {
			for {
				m, ok := s.publish()
				if !ok {
					s.CloseWrite()
					return
				}
				mu.Lock()
				got = append(got, string(m.Block[8:]))
				mu.Unlock()
				a := wire.Ack{RequestID: m.RequestID}
				if addr := owner(); addr != "" && m.RequestID > 20 {
					a.HasOwner, a.OwnerNode, a.OwnerAddr, a.OwnerGeneration = true, "b", addr, 5
				}
				s.ack(a)
			}
		}
	}
	owner := newPeer(t, serve(func() string { return "" }))
	entry := newPeer(t, serve(func() string { return owner.addr() }))
	c := dial(t, []string{entry.addr()})
	pub := c.Publisher("s")
	var want []string
	for i := range n {
		payload := fmt.Sprintf("%04d", i)
		want = append(want, payload)
		if _, err := pub.Send(testContext(t), []byte(payload)); err != nil {
			t.Fatal(err)
		}
		if i%40 == 39 {
			if err := pub.Flush(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("records came out of order")
	}
	if owner.authCount() == 0 {
		t.Error("nothing went to the owner")
	}
}

func TestAnotherBrokerTakesOver(t *testing.T) {
	var got [2]atomic.Int64
	var brokers []*peer
	for i := range got {
		brokers = append(brokers, newPeer(t, func(s *peerStream) {
			for {
				m, ok := s.publish()
				if !ok {
					return
				}
				got[i].Add(1)
				s.ack(wire.Ack{RequestID: m.RequestID})
			}
		}))
	}
	c := dial(t, []string{brokers[0].addr(), brokers[1].addr()}, WithDialTimeout(500*time.Millisecond))
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "s", nil); err != nil {
		t.Fatal(err)
	}
	if got[0].Load() != 1 || got[1].Load() != 0 {
		t.Errorf("publishes went to %d and %d", got[0].Load(), got[1].Load())
	}
	brokers[0].stop()
	if _, err := c.Publish(ctx, "s", nil, WithAtLeastOnce()); err != nil {
		t.Fatal(err)
	}
	if got[1].Load() != 1 {
		t.Errorf("the second broker got %d", got[1].Load())
	}
}

func TestDrainingBrokerIsPassedOver(t *testing.T) {
	draining := newPeer(t, ackAll)
	draining.setAnswer(func(a *wire.Auth) wire.Message {
		return a.Offer().Error(wire.Failure{Code: wire.CodeDraining, Message: "draining"})
	})
	fine := newPeer(t, ackAll)
	c := dial(t, []string{draining.addr(), fine.addr()})
	if _, err := c.Publish(testContext(t), "s", nil); err != nil {
		t.Fatal(err)
	}
	_, err := tryDial(t, []string{draining.addr()})
	var u *UnreachableError
	if !errors.As(err, &u) || !hasCode(err, CodeDraining) || !strings.Contains(err.Error(), "draining") {
		t.Errorf("only a draining broker: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	gone := newPeer(t, ackAll)
	addr := gone.addr()
	gone.stop()
	_, err := tryDial(t, []string{addr}, WithDialTimeout(50*time.Millisecond), WithReconnect(ReconnectPolicy{Attempts: 2, Initial: time.Millisecond, Max: time.Millisecond}))
	var u *UnreachableError
	if !errors.As(err, &u) || !slices.Equal(u.Endpoints, []string{addr}) || !IsRetryable(err) {
		t.Errorf("error %v", err)
	}
}

func TestUntrustedBrokerIsNotTriedAgain(t *testing.T) {
	p := newPeer(t, ackAll)
	_, err := tryDial(t, []string{p.addr()}, WithServerName("elsewhere.example"), WithReconnect(ReconnectPolicy{Attempts: 1000, Initial: time.Second, Max: time.Second}))
	var u *UnreachableError
	if !errors.As(err, &u) || IsRetryable(err) || !strings.Contains(err.Error(), "elsewhere.example") {
		t.Errorf("error %v", err)
	}
}

// TestConnectionsAreSpreadOverPorts: a broker that names its ports gets the
// further connections there.
func TestConnectionsAreSpreadOverPorts(t *testing.T) {
	second := newPeer(t, ackAll)
	first := newPeer(t, ackAll)
	ports := func(p *peer) uint16 {
		var port uint16
		fmt.Sscanf(p.addr(), "127.0.0.1:%d", &port)
		return port
	}
	answer := func(a *wire.Auth) wire.Message {
		m := fullOffer(a).(*wire.AuthOK)
		m.ListenerPorts = []uint16{ports(first), ports(second)}
		return m
	}
	first.setAnswer(answer)
	second.setAnswer(answer)
	c := dial(t, []string{first.addr()}, WithPools(Pools{PublishConns: 4, PublishStreams: 1}))
	for i := range 8 {
		if _, err := c.Publish(testContext(t), fmt.Sprint("s", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := first.connCount(), second.connCount(); a != 2 || b != 2 {
		t.Errorf("%d and %d connections, want 2 and 2", a, b)
	}
}
