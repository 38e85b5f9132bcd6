package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/wire"
)

// expectDeleted reads the last frame of a subscription whose stream was deleted.
func expectDeleted(t *testing.T, e *eventLane) {
	t.Helper()
	h, payload := e.frame()
	want := fmt.Sprintf(`{"type":"stream_deleted","subscription_id":%d}`, e.said.SubscriptionID)
	if h.Flags != 0 || string(payload) != want {
		t.Fatalf("frame %#x %s, want %s", h.Flags, payload, want)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// What lives on a stream or a cache ends with it, however it is deleted, and
// every kind is told that it was.
func TestDeletionEndsWhatLives(t *testing.T) {
	core := func(m *member) *broker.Broker { return m.node.Core() }
	for name, remove := range map[string]func(m *member) error{
		"by name": func(m *member) error {
			if err := core(m).RemoveCache(broker.CacheName{Tenant: memberTenant, Namespace: memberNamespace, Name: "c"}); err != nil {
				return err
			}
			return core(m).RemoveStream(broker.StreamName{Tenant: memberTenant, Namespace: memberNamespace, Name: "s"})
		},
		"with its namespace": func(m *member) error { return core(m).RemoveNamespace(memberTenant, memberNamespace) },
		"with its data": func(m *member) error {
			if _, err := core(m).PurgeCache(t.Context(), broker.CacheName{Tenant: memberTenant, Namespace: memberNamespace, Name: "c"}, "uc"); err != nil {
				return err
			}
			_, err := core(m).PurgeStream(t.Context(), broker.StreamName{Tenant: memberTenant, Namespace: memberNamespace, Name: "s"}, "us")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMember(t)
			streamOf, cacheOf := m.placed(1)
			m.own(streamOf(0), 1)
			m.own(cacheOf(0), 1)
			p := dial(t, m)
			sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
			watch := p.watch(&wire.CacheWatch{Prefix: some("")})
			poll := p.login(modern(), m.Token())
			group := wire.GroupRef{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Group: "g"}
			poll.say(&wire.GroupPoll{GroupRef: group, MaxRecords: 1, WaitMS: 20_000, RequestID: 1})
			until(t, "the poll waits", func() bool { return core(m).Stats().Groups.Waiting == 1 })

			m.must(remove(m))
			expectDeleted(t, sub)
			sub.ended()
			expectError(t, watch.message(), "not_found", "fatal")
			watch.ended()
			expectError(t, poll.message(), "not_found", "retry_after")

			l := p.login(modern(), m.Token())
			l.send(p.publish(1, "s", []byte("x")).Append(nil))
			if a := l.ack(); a.Code != wire.CodeNotFound {
				t.Errorf("publish: %+v", a)
			}
			for what, request := range redirected(p) {
				l := p.login(modern(), m.Token())
				l.say(request)
				if e, is := l.message().(*wire.Error); !is || e.Code.Value != "not_found" {
					t.Errorf("%s: %#v", what, e)
				}
			}
		})
	}
}

// Publishes that wait for room are refused as soon as their stream is deleted;
// those the log has are answered when it has written them.
func TestDeletionEndsParkedPublishes(t *testing.T) {
	n, _, gate := stuck(t)
	p := dial(t, n)
	unordered := modern()
	unordered.Features &^= wire.FeaturePublishPipeline
	l := p.login(unordered, n.Token())
	fill(p, l)
	if v, is := l.message().(*wire.CacheValue); !is {
		t.Fatalf("get behind the publishes: %+v", v)
	}
	n.RemoveStream("stuck")
	const room = 3
	for range parkedCount - room {
		if a := l.ack(); !a.Failed || a.Code != wire.CodeNotFound {
			t.Fatalf("while the disk stands still: %+v", a)
		}
	}
	gate.Open()
	for range room {
		if a := l.ack(); a.Failed {
			t.Fatalf("of the log: %+v", a)
		}
	}
}

// A tenant that is removed takes the rights of its tokens with it: event
// streams end, and requests are refused.
func TestTenantRemoved(t *testing.T) {
	m := startMember(t)
	streamOf, cacheOf := m.placed(1)
	m.own(streamOf(0), 1)
	m.own(cacheOf(0), 1)
	p := dial(t, m)
	idle := p.login(modern(), m.Token())
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	watch := p.watch(&wire.CacheWatch{Prefix: some("")})
	m.must(m.node.Core().RemoveTenant(memberTenant))
	idle.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := idle.ack(); a.Code != wire.CodeUnauthenticated || a.Retry != wire.Fatal {
		t.Errorf("%+v", a)
	}
	expectError(t, idle.message(), "unauthenticated", "fatal")
	idle.ended()
	_, payload := sub.frame()
	last, err := wire.ParseMessage(payload)
	if err != nil {
		t.Fatal(err)
	}
	expectError(t, last, "unauthenticated", "fatal")
	sub.ended()
	expectError(t, watch.message(), "unauthenticated", "fatal")
	watch.ended()
}
