package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestGroupUnsupported: nothing is sent to a broker that would not know it.
func TestGroupUnsupported(t *testing.T) {
	with := func(f wire.Features) wire.Features { return wire.FeatureConsumerGroup | f }
	claim := Claim{Offset: 1, Attempts: 1}
	table := []struct {
		name string
		has  wire.Features
		call func(ctx context.Context, g *Group) error
	}{
		{"poll", 0, func(ctx context.Context, g *Group) error { _, err := g.Poll(ctx); return err }},
		{"visibility", with(0), func(ctx context.Context, g *Group) error {
			_, err := g.Poll(ctx, PollVisibility(time.Second))
			return err
		}},
		{"consumer", with(0), func(ctx context.Context, g *Group) error { _, err := g.Poll(ctx, PollAs("me")); return err }},
		{"ack", 0, func(ctx context.Context, g *Group) error { return g.Ack(ctx, claim) }},
		{"nack", with(0), func(ctx context.Context, g *Group) error { return g.Nack(ctx, claim, 0) }},
		{"delay", with(0), func(ctx context.Context, g *Group) error { return g.Nack(ctx, Claim{}, 1) }},
		{"extend", with(0), func(ctx context.Context, g *Group) error { _, err := g.Extend(ctx, claim, 1); return err }},
		{"dead letter", with(0), func(ctx context.Context, g *Group) error { return g.DeadLetter(ctx, claim) }},
		{"dead letters", with(0), func(ctx context.Context, g *Group) error { _, err := g.DeadLetters(ctx, 0); return err }},
		{"discard", with(0), func(ctx context.Context, g *Group) error { return g.Discard(ctx, 0, 1) }},
		{"redrive", with(0), func(ctx context.Context, g *Group) error { return g.Redrive(ctx, 0, 1) }},
		{"create", with(0), func(ctx context.Context, g *Group) error { _, err := g.Create(ctx, 0, Latest()); return err }},
		{"seek", with(0), func(ctx context.Context, g *Group) error { _, err := g.Seek(ctx, 0, Latest()); return err }},
		{"describe", with(0), func(ctx context.Context, g *Group) error { _, err := g.Describe(ctx, 0); return err }},
		{"delete", with(0), func(ctx context.Context, g *Group) error { _, err := g.Delete(ctx, 0); return err }},
		{"consume", with(0), func(ctx context.Context, g *Group) error {
			return g.c.Consume(ctx, g, func(context.Context, Delivery) error { return nil })
		}},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(s *peerStream) {
				if m := s.message(); m != nil {
					t.Errorf("sent %s", m.MessageType())
				}
			})
			p.setAnswer(offering(wire.KnownFlags, row.has))
			g := dial(t, []string{p.addr()}).Group("s", "g")
			if err := row.call(testContext(t), g); !errors.Is(err, ErrUnsupported) {
				t.Errorf("error %v, want unsupported", err)
			}
		})
	}
	t.Run("plain nack", func(t *testing.T) {
		g := newGroupPeer(t, 1)
		g.publish(0, "a")
		g.setAnswer(offering(wire.KnownFlags, wire.FeatureConsumerGroup))
		if err := dial(t, []string{g.addr()}).Group("s", "g").Nack(testContext(t), Claim{}, 0); err != nil {
			t.Errorf("a nack that names no delivery: %v", err)
		}
	})
}

// TestGroupRefusedHere: what cannot be is refused before anything is sent.
func TestGroupRefusedHere(t *testing.T) {
	p := newPeer(t, func(s *peerStream) {
		if m := s.message(); m != nil {
			t.Errorf("sent %s", m.MessageType())
		}
	})
	c := dial(t, []string{p.addr()})
	g := c.Group("s", "g")
	ctx := testContext(t)
	poll := func(opts ...PollOption) error { _, err := g.Poll(ctx, opts...); return err }
	extend := func(claim Claim, d time.Duration) error { _, err := g.Extend(ctx, claim, d); return err }
	consume := func(opts ...ConsumeOption) error {
		return c.Consume(ctx, g, func(context.Context, Delivery) error { return nil }, opts...)
	}
	describe := func(opts ...DescribeOption) error { _, err := g.Describe(ctx, 0, opts...); return err }
	for name, err := range map[string]error{
		"no records":       poll(PollMax(0)),
		"many records":     poll(PollMax(1001)),
		"negative wait":    poll(PollWait(-time.Second)),
		"visibility":       poll(PollVisibility(13 * time.Hour)),
		"nameless reclaim": poll(PollReclaim()),
		"empty consumer":   poll(PollAs("")),
		"long consumer":    poll(PollAs(strings.Repeat("x", 129))),
		"no attempts":      extend(Claim{}, time.Second),
		"no extension":     extend(Claim{Attempts: 1}, 0),
		"held":             describe(DescribeHeld(0, 1001)),
		"concurrency":      consume(ConsumeConcurrency(0)),
		"batch":            consume(ConsumeBatch(1001)),
		"nil backoff":      consume(ConsumeBackoff(nil)),
		"consumer":         consume(ConsumeAs(strings.Repeat("x", 129))),
		"nil handler":      c.Consume(ctx, g, nil),
	} {
		if !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("%s: %v, want an invalid request", name, err)
		}
	}
	for name, g := range map[string]*Group{"stream": c.Group("a b", "g"), "group": c.Group("s", ""), "namespace": c.Group("s", "g", InNamespace("/"))} {
		_, poll := g.Poll(ctx)
		_, shards := g.Shards(ctx)
		for _, err := range []error{poll, shards, g.Ack(ctx, Claim{}), g.Nack(ctx, Claim{}, 0), c.Consume(ctx, g, func(context.Context, Delivery) error { return nil })} {
			if e, ok := errors.AsType[*NameError](err); !ok || e.Kind != name {
				t.Errorf("bad %s: %v", name, err)
			}
		}
	}
}

// TestGroupOverLostConnections: what may be repeated is, and what may not says
// that nobody knows.
func TestGroupOverLostConnections(t *testing.T) {
	claim := Claim{Attempts: 1}
	table := []struct {
		name    string
		repeat  bool
		second  wire.Message // answers the repetition
		call    func(ctx context.Context, g *Group) error
		outcome func(error) bool
	}{
		{"poll", true, &wire.GroupRecords{}, func(ctx context.Context, g *Group) error { _, err := g.Poll(ctx); return err }, isNil},
		{"ack", true, &wire.CacheOK{}, func(ctx context.Context, g *Group) error { return g.Ack(ctx, claims(0, 1, 2)...) }, isNil},
		{"nack", true, stale("fatal"), func(ctx context.Context, g *Group) error { return g.Nack(ctx, claim, 1) }, isNil},
		{"extend", true, &wire.GroupExtended{}, func(ctx context.Context, g *Group) error { _, err := g.Extend(ctx, claim, 1); return err }, isNil},
		{"stale extend", true, stale("fatal"), func(ctx context.Context, g *Group) error { _, err := g.Extend(ctx, claim, 1); return err },
			func(err error) bool { return errors.Is(err, ErrStaleClaim) }},
		{"dead letter", true, refusal("invalid_request", "fatal"), func(ctx context.Context, g *Group) error { return g.DeadLetter(ctx, claim) }, isNil},
		{"discard", true, refusal("not_found", "fatal"), func(ctx context.Context, g *Group) error { return g.Discard(ctx, 0, 1) }, isNil},
		{"redrive", true, refusal("not_found", "retry_after"), func(ctx context.Context, g *Group) error { return g.Redrive(ctx, 0, 1) }, isNil},
		{"create", true, &wire.GroupPosition{}, func(ctx context.Context, g *Group) error { _, err := g.Create(ctx, 0, Latest()); return err }, isNil},
		{"nack of any delivery", false, nil, func(ctx context.Context, g *Group) error { return g.Nack(ctx, Claim{}, 0) }, IsOutcomeUnknown},
		{"seek", false, nil, func(ctx context.Context, g *Group) error { _, err := g.Seek(ctx, 0, Latest()); return err }, IsOutcomeUnknown},
		{"delete", false, nil, func(ctx context.Context, g *Group) error { _, err := g.Delete(ctx, 0); return err }, IsOutcomeUnknown},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			lost, requests := false, 0
			p := newPeer(t, func(s *peerStream) {
				for m := s.message(); m != nil; m = s.message() {
					mu.Lock()
					first := !lost
					lost = true
					if !first {
						requests++
					}
					mu.Unlock()
					if first {
						s.conn.Close(7, "cut")
						return
					}
					answer := row.second
					if _, refused := answer.(*wire.Error); !refused && answer != nil {
						answer = withID(answer, requestID(m))
					}
					s.send(answer)
				}
			})
			g := dial(t, []string{p.addr()}).Group("s", "g")
			err := row.call(testContext(t), g)
			if !row.outcome(err) {
				t.Errorf("error %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if repeated := requests > 0; repeated != row.repeat {
				t.Errorf("%d requests behind the lost one", requests)
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

// TestGroupFollowsItsLeader: redirects are followed, and remembered.
func TestGroupFollowsItsLeader(t *testing.T) {
	leader := newGroupPeer(t, 1)
	leader.publishNumbered(0, 4)
	var asked atomic.Int32
	entry := newPeer(t, func(s *peerStream) {
		for m := s.message(); m != nil; m = s.message() {
			asked.Add(1)
			s.send(notLeader("b2", leader.addr()))
		}
		s.CloseWrite()
	})
	g := dial(t, []string{entry.addr()}).Group("s", "g")
	ctx := testContext(t)
	if d, err := g.Poll(ctx, PollMax(2)); err != nil || len(d) != 2 {
		t.Fatalf("poll: %v, %v", d, err)
	}
	if err := g.Ack(ctx, claims(0, 0, 1)...); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests at a broker that is not the leader", n)
	}
	// Another handle has to ask, with many claims at once.
	other := g.c.Group("s", "g")
	if err := other.Ack(ctx, claims(0, 2, 3)...); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 || leader.unfinished() != 0 {
		t.Errorf("%d requests redirected, %d records unfinished", n, leader.unfinished())
	}
}

// TestGroupRedirectsEnd: brokers that name each other are not asked for ever.
func TestGroupRedirectsEnd(t *testing.T) {
	var addrs [2]string
	peers := [2]*peer{}
	for i := range peers {
		peers[i] = newPeer(t, func(s *peerStream) {
			for m := s.message(); m != nil; m = s.message() {
				s.send(notLeader("other", addrs[1-i]))
			}
			s.CloseWrite()
		})
		addrs[i] = peers[i].addr()
	}
	g := dial(t, []string{addrs[0]}).Group("s", "g")
	_, err := g.Poll(testContext(t))
	for _, err := range []error{err, g.Ack(testContext(t), Claim{})} {
		if !hasCode(err, CodeNotLeader) || !IsRetryable(err) {
			t.Errorf("error %v", err)
		}
	}
}

// TestGroupTokenExpires: another token is asked for, and nobody notices.
func TestGroupTokenExpires(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 2)
	var mu sync.Mutex
	token := 1
	provider := func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint("token", token), nil
	}
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		mu.Lock()
		defer mu.Unlock()
		if s.auth.Token != fmt.Sprint("token", token) {
			return refusal("unauthenticated", "fatal")
		}
		return nil
	})
	q := dial(t, []string{g.addr()}, WithTokenProvider(provider)).Group("s", "g")
	for i := range uint64(2) {
		if d, err := q.Poll(testContext(t), PollMax(1)); err != nil || len(d) != 1 {
			t.Fatalf("poll %d: %v, %v", i, d, err)
		}
		if err := q.Ack(testContext(t), Claim{Offset: i}); err != nil {
			t.Fatalf("ack %d: %v", i, err)
		}
		mu.Lock()
		token++
		mu.Unlock()
	}
}
