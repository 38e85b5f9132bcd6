package session_test

import (
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

func (p *peer) publishIf(id, expected uint64, stream string, payloads ...[]byte) *wire.PublishIf {
	return &wire.PublishIf{
		Tenant: p.node.Tenant(), Namespace: p.node.Namespace(), Stream: stream,
		Payloads: wire.AppendBlock(nil, payloads...), ExpectedOffset: expected, RequestID: id,
	}
}

func (p *peer) commit(id uint64, entity, event string, changes ...wire.StateChange) *wire.Commit {
	return &wire.Commit{
		Tenant: p.node.Tenant(), Namespace: p.node.Namespace(), Stream: "s", EntityKey: []byte(entity), Event: []byte(event),
		Changes: changes, RequestID: id,
	}
}

func expectError(t *testing.T, m wire.Message, code, retry string) {
	t.Helper()
	e, is := m.(*wire.Error)
	if !is || e.Code.Value != code || e.Retry.Value != retry || e.Message == "" {
		t.Fatalf("answer %#v, want error %s, %s", m, code, retry)
	}
}

// publish_if lands exactly where it is expected, or is refused with the tail
// and writes nothing (wire 9.7).
func TestPublishIf(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	n.CreateStreamWith("memory", broker.StreamOptions{})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	l.say(p.publishIf(1, 0, "s", []byte("a"), []byte("b")))
	expectOffset(t, l.message(), 1, 0)
	l.say(p.publishIf(2, 0, "s", []byte("c")))
	expectRefused(t, l.message(), 2, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 2})
	l.say(p.publishIf(3, 9, "s", []byte("c")))
	expectRefused(t, l.message(), 3, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 2})
	l.say(p.publishIf(4, 2, "s", []byte("c")))
	expectOffset(t, l.message(), 4, 2)
	l.say(p.publishIf(5, 3, "s"))
	expectError(t, l.message(), "invalid_request", "fatal")
	l.say(p.publishIf(6, 0, "memory", []byte("x")))
	expectError(t, l.message(), "invalid_request", "fatal")
	// Two at one place: exactly one wins, and the answers keep their order.
	l.send(wire.AppendMessage(wire.AppendMessage(nil, p.publishIf(7, 3, "s", []byte("d"))), p.publishIf(8, 3, "s", []byte("e"))))
	expectOffset(t, l.message(), 7, 3)
	expectRefused(t, l.message(), 8, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 4})
	foreign := p.publishIf(9, 4, "s", []byte("x"))
	foreign.Tenant = "other"
	l.say(foreign)
	expectError(t, l.message(), "forbidden", "fatal")
	l.ended()
}

// A commit writes its event and its state as one: subscribers see the event
// alone, state_get the newest value with its version, also after a restart.
func TestCommit(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	put := func(key, value string) wire.StateChange {
		return wire.StateChange{Key: []byte(key), Value: []byte(value)}
	}
	for i, c := range []*wire.Commit{
		p.commit(1, "order-1", "placed", put("status", "placed"), put("sum", "10")),
		p.commit(2, "order-1", "paid", put("status", "paid")),
		p.commit(3, "order-1", "closed", wire.StateChange{Delete: true, Key: []byte("sum")}),
		p.commit(4, "order-1", "noted"),
	} {
		l.say(c)
		if ok, is := l.message().(*wire.CommitOK); !is || ok.RequestID != c.RequestID || ok.Offset != uint64(i) {
			t.Fatalf("commit %d: %+v", i, ok)
		}
	}
	guarded := p.commit(5, "order-1", "late", put("status", "late"))
	guarded.ExpectedOffset = wire.Some[uint64](2)
	l.say(guarded)
	expectRefused(t, l.message(), 5, wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 4})

	check := func(when string, l *lane) {
		t.Helper()
		for _, tc := range []struct {
			key     string
			value   wire.Optional[[]byte]
			version wire.Optional[uint64]
		}{
			{"status", wire.Some([]byte("paid")), wire.Some[uint64](1)},
			{"sum", wire.Optional[[]byte]{}, wire.Optional[uint64]{}},
			{"never", wire.Optional[[]byte]{}, wire.Optional[uint64]{}},
		} {
			l.say(&wire.StateGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", EntityKey: []byte("order-1"), Key: []byte(tc.key), RequestID: 9})
			v, is := l.message().(*wire.StateValue)
			if !is || v.RequestID != 9 || v.Value.Set != tc.value.Set || string(v.Value.Value) != string(tc.value.Value) || v.Version != tc.version || v.AsOf != wire.Some[uint64](2) {
				t.Fatalf("%s: %s is %+v", when, tc.key, v)
			}
		}
	}
	check("before", l)
	n.Restart()
	p = dial(t, n)
	check("after a restart", p.login(modern(), n.Token()))
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s", Start: wire.Some(wire.Start{Kind: wire.StartEarliest})})
	got := ""
	for len(got) < len("placed paid closed noted ") {
		b := sub.batch()
		for _, e := range b.All() {
			got += string(e.Payload) + " "
		}
	}
	if got != "placed paid closed noted " {
		t.Fatalf("subscribers see %q", got)
	}
}

// A commit to a stream in memory is refused, and so is the read of its state.
func TestCommitNeedsALog(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	n.CreateStreamWith("s", broker.StreamOptions{})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	l.say(p.commit(1, "e", "x", wire.StateChange{Key: []byte("k"), Value: []byte("v")}))
	expectError(t, l.message(), "invalid_request", "fatal")
	l.say(&wire.StateGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", EntityKey: []byte("e"), Key: []byte("k"), RequestID: 2})
	expectError(t, l.message(), "invalid_request", "fatal")
}

// A node without storage says of each request that needs a log that it does
// not serve it, by name and id.
func TestNodeInMemoryServesNoLogRequests(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for _, m := range []wire.Message{
		p.publishIf(1, 0, "s", []byte("x")), p.commit(2, "e", "x"),
		&wire.StateGet{Stream: "s", RequestID: 3}, &wire.StreamRead{Stream: "s", RequestID: 4}, &wire.OffsetForTime{Stream: "s", RequestID: 5},
		&wire.CounterAdd{Cache: "c", RequestID: 6}, &wire.CounterGet{Cache: "c", RequestID: 7},
	} {
		l.say(m)
		u, is := l.message().(*wire.Unsupported)
		if !is || u.RequestType != m.MessageType() || !u.RequestID.Set {
			t.Fatalf("%s: %+v", m.MessageType(), u)
		}
	}
	l.say(&wire.CacheWatch{Cache: "c"})
	if u, is := l.message().(*wire.Unsupported); !is || u.RequestType != "cache_watch" {
		t.Fatalf("cache_watch: %+v", u)
	}
}
