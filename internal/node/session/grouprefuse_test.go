package session_test

import (
	"strings"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// groupMessages is every request of a group, those that need group.manage last.
func groupMessages(g wire.GroupRef) (consume, manage []wire.Message) {
	return []wire.Message{
			&wire.GroupPoll{GroupRef: g, MaxRecords: 1, RequestID: 7},
			&wire.GroupAck{GroupRef: g, RequestID: 7},
			&wire.GroupNack{GroupRef: g, RequestID: 7},
			&wire.GroupExtend{GroupRef: g, Attempts: 1, ExtendMS: 1000, RequestID: 7},
			&wire.GroupDeadLetter{GroupRef: g, RequestID: 7},
			&wire.GroupDeadLetters{GroupRef: g, RequestID: 7},
			&wire.GroupDescribe{GroupRef: g, RequestID: 7},
		}, []wire.Message{
			&wire.GroupDiscard{GroupRef: g, RequestID: 7},
			&wire.GroupRedrive{GroupRef: g, RequestID: 7},
			&wire.GroupSeek{GroupRef: g, RequestID: 7},
			&wire.GroupDelete{GroupRef: g, RequestID: 7},
		}
}

func everyGroupMessage(g wire.GroupRef) []wire.Message {
	consume, manage := groupMessages(g)
	return append(consume, manage...)
}

// What is wrong with the names or the stream is told, and the stream goes on.
func TestGroupNamesAreRefused(t *testing.T) {
	n := startGroups(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateStream("s", 2)
	n.CreateStreamWith("memory", broker.StreamOptions{})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for _, tc := range []struct {
		change      func(*wire.GroupRef)
		code, retry string
	}{
		{func(g *wire.GroupRef) { g.Group = "" }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Group = "a/b" }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Group = strings.Repeat("g", 254) }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Stream = "a b" }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Namespace = ".." }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Shard = 2 }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Stream = "memory" }, "invalid_request", "fatal"},
		{func(g *wire.GroupRef) { g.Stream = "missing" }, "not_found", "retry_after"},
	} {
		g := p.group("g")
		tc.change(&g)
		for _, m := range everyGroupMessage(g) {
			l.say(m)
			expectError(t, l.message(), tc.code, tc.retry)
		}
	}
	foreign := p.group("g")
	foreign.Tenant = "t2"
	for _, m := range everyGroupMessage(foreign) {
		l := p.login(modern(), n.Token())
		l.say(m)
		expectError(t, l.message(), "forbidden", "fatal")
		l.ended()
	}
}

// The rights of wire 12.3: group.consume and group.manage, which the rights to
// subscribe and to manage the stream imply; a grant on one group of a stream is
// for that group alone.
func TestGroupRights(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	for _, tc := range []struct {
		grants          []string
		consume, manage bool
	}{
		{[]string{"stream.publish:stream:t1/*", "cache.read:cache:t1/*"}, false, false},
		{[]string{"group.consume:group:t1/*"}, true, false},
		{[]string{"group.manage:group:t1/*"}, false, true},
		{[]string{"group.consume:group:t1/default/s/g", "group.manage:group:t1/default/s/g"}, true, true},
		{[]string{"group.consume:group:t1/default/s/other", "group.manage:group:t1/default/s/other"}, false, false},
		{[]string{"group.consume:stream:t1/default/s"}, true, false},
		{[]string{"stream.subscribe:stream:t1/*"}, true, false},
		{[]string{"stream.manage:stream:t1/*"}, false, true},
		{[]string{"stream.subscribe:stream:t1/*", "group.consume:group:t1/default/s/other"}, false, false},
	} {
		token := n.Token(tc.grants...)
		check := func(m wire.Message, allowed bool) {
			t.Helper()
			l := p.login(modern(), token)
			l.say(m)
			answer := l.message()
			refused, is := answer.(*wire.Error)
			if forbidden := is && refused.Code.Value == "forbidden"; forbidden == allowed {
				t.Fatalf("%v: %s answered %+v", tc.grants, m.MessageType(), answer)
			}
			if !allowed {
				l.ended()
			}
		}
		consume, manage := groupMessages(p.group("g"))
		for _, m := range consume {
			check(m, tc.consume)
		}
		for _, m := range manage {
			check(m, tc.manage)
		}
	}
}

// A right that is missing is found missing on a stream that has another right
// to the same group.
func TestGroupRightsOfOneStream(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token("group.consume:group:t1/*"))
	l.polled(p.poll(1, 1, 0), "0:a:1")
	l.say(&wire.GroupDelete{GroupRef: p.group("g"), RequestID: 2})
	expectError(t, l.message(), "forbidden", "fatal")
	l.ended()
}

// What a request asks that cannot be is refused with what to do about it, and
// the stream goes on (wire 12.2).
func TestGroupRefusals(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(4)...)
	l := p.login(modern(), n.Token())
	g := p.group("g")
	l.polled(p.poll(1, 3, 0), "0:a:1", "1:b:1", "2:c:1")
	l.settled(&wire.GroupAck{GroupRef: g, Offset: 0, RequestID: 2}, 2)
	l.settled(&wire.GroupNack{GroupRef: g, Offset: 1, RequestID: 3}, 3)
	poll := func(change func(*wire.GroupPoll)) *wire.GroupPoll {
		m := p.poll(4, 1, 0)
		change(m)
		return m
	}
	for _, tc := range []struct {
		what        string
		m           wire.Message
		code, retry string
	}{
		{"a poll for nothing", poll(func(m *wire.GroupPoll) { m.MaxRecords = 0 }), "invalid_request", "fatal"},
		{"a consumer without a name", poll(func(m *wire.GroupPoll) { m.Consumer = wire.Some("") }), "invalid_request", "fatal"},
		{"a long name", poll(func(m *wire.GroupPoll) { m.Consumer = wire.Some(strings.Repeat("c", 129)) }), "invalid_request", "fatal"},
		{"a bad name", poll(func(m *wire.GroupPoll) { m.Consumer = wire.Some("a b") }), "invalid_request", "fatal"},
		{"a reclaim by nobody", poll(func(m *wire.GroupPoll) { m.Reclaim = true }), "invalid_request", "fatal"},
		{"an ack past the tail", &wire.GroupAck{GroupRef: g, Offset: 4}, "invalid_request", "fatal"},
		{"an ack of what nobody has", &wire.GroupAck{GroupRef: g, Offset: 3}, "invalid_request", "fatal"},
		{"a nack past the tail", &wire.GroupNack{GroupRef: g, Offset: 4}, "invalid_request", "fatal"},
		{"a late nack", &wire.GroupNack{GroupRef: g, Offset: 1, Attempts: 1}, "stale_claim", "fatal"},
		{"a nack of another delivery", &wire.GroupNack{GroupRef: g, Offset: 2, Attempts: 2}, "stale_claim", "fatal"},
		{"an extension of nothing", &wire.GroupExtend{GroupRef: g, Offset: 2, Attempts: 1}, "invalid_request", "fatal"},
		{"a late extension", &wire.GroupExtend{GroupRef: g, Offset: 1, Attempts: 1, ExtendMS: 1}, "stale_claim", "fatal"},
		{"a dead letter of what is finished", &wire.GroupDeadLetter{GroupRef: g, Offset: 0}, "invalid_request", "fatal"},
		{"a dead letter past the tail", &wire.GroupDeadLetter{GroupRef: g, Offset: 4}, "invalid_request", "fatal"},
		{"a discard of what is not listed", &wire.GroupDiscard{GroupRef: g, Offset: 0}, "not_found", "fatal"},
		{"a redrive of what is not listed", &wire.GroupRedrive{GroupRef: g, Offset: 0}, "not_found", "fatal"},
		{"a position past the tail", &wire.GroupSeek{GroupRef: g, Start: wire.Start{Kind: wire.StartOffset, Offset: 5}}, "invalid_request", "fatal"},
	} {
		l.say(tc.m)
		e, is := l.message().(*wire.Error)
		if !is || e.Code.Value != tc.code || e.Retry.Value != tc.retry || len(e.Message) < 20 {
			t.Fatalf("%s: %+v, want %s, %s", tc.what, e, tc.code, tc.retry)
		}
	}
	if info := l.describe(p); info.Committed != wire.Some[uint64](1) || info.InFlight != 1 || info.Owed != 1 || info.DeadLetters != 0 {
		t.Fatalf("after all that was refused: %+v", info)
	}
}

// A node without storage serves no groups and does not say that it does.
func TestGroupsNeedStorage(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for _, m := range everyGroupMessage(p.group("g")) {
		if u, is := l.ask(m).(*wire.Unsupported); !is || u.RequestType != m.MessageType() || u.RequestID != wire.Some[uint64](7) {
			t.Fatalf("%s: %+v", m.MessageType(), u)
		}
	}
}
