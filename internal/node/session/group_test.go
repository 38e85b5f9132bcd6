package session_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// startGroups starts a durable node whose claims and polls last longer than any
// test.
func startGroups(t *testing.T, opts ...felixtest.Option) *felixtest.Node {
	t.Helper()
	return felixtest.Start(t, append([]felixtest.Option{felixtest.Durable(),
		felixtest.WithSetting("group-visibility-timeout-ms", "1h"), felixtest.WithSetting("group-max-wait-ms", "1h")}, opts...)...)
}

// group names a group of shard 0 of stream "s".
func (p *peer) group(name string) wire.GroupRef {
	return wire.GroupRef{Tenant: p.node.Tenant(), Namespace: p.node.Namespace(), Stream: "s", Group: name}
}

// poll asks group "g" for records; wait says how long.
func (p *peer) poll(id uint64, most uint32, wait time.Duration) *wire.GroupPoll {
	return &wire.GroupPoll{GroupRef: p.group("g"), RequestID: id, MaxRecords: most, WaitMS: uint64(wait.Milliseconds())}
}

// produce publishes records to stream "s", each in a batch of its own, and
// returns the offset of the first.
func (p *peer) produce(payloads ...[]byte) (first uint64) {
	p.t.Helper()
	l := p.login(modern(), p.node.Token())
	for i, payload := range payloads {
		l.send(p.publish(uint64(i), "s", payload).Append(nil))
		a := l.ack()
		if a.Failed {
			p.t.Fatalf("publish %d: %+v", i, a)
		}
		if i == 0 {
			first = a.Offset
		}
	}
	return first
}

// letters is n records of one letter.
func letters(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = []byte{byte('a' + i%26)}
	}
	return all
}

func (l *lane) ask(m wire.Message) wire.Message {
	l.t.Helper()
	l.say(m)
	return l.message()
}

// settled asks for what is answered cache_ok.
func (l *lane) settled(m wire.Message, requestID uint64) {
	l.t.Helper()
	if ok, is := l.ask(m).(*wire.CacheOK); !is || ok.RequestID != requestID {
		l.t.Fatalf("%+v: answer %+v", m, ok)
	}
}

// records reads the answer to a poll, as "offset:payload:attempts" each.
func (l *lane) records(requestID uint64) []string {
	l.t.Helper()
	m := l.message()
	r, is := m.(*wire.GroupRecords)
	if !is || r.RequestID != requestID {
		l.t.Fatalf("answer %+v, want the records of poll %d", m, requestID)
	}
	list := []string{}
	for _, rec := range r.Records {
		list = append(list, fmt.Sprintf("%d:%s:%d", rec.Offset, rec.Payload, rec.Attempts))
	}
	return list
}

func (l *lane) polled(m *wire.GroupPoll, want ...string) {
	l.t.Helper()
	l.say(m)
	if got := l.records(m.RequestID); strings.Join(got, " ") != strings.Join(want, " ") {
		l.t.Fatalf("poll %+v gave %v, want %v", m, got, want)
	}
}

func (l *lane) describe(p *peer) *wire.GroupInfo {
	l.t.Helper()
	m := l.ask(&wire.GroupDescribe{GroupRef: p.group("g"), RequestID: 99})
	info, is := m.(*wire.GroupInfo)
	if !is || info.RequestID != 99 {
		l.t.Fatalf("describe: %+v", m)
	}
	return info
}

// Every request of a group does what it says, and is answered with its id
// (wire 12.2).
func TestGroupRequests(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(4)...)
	l := p.login(modern(), n.Token())
	g := p.group("g")

	l.polled(p.poll(1, 2, 0), "0:a:1", "1:b:1")
	l.settled(&wire.GroupAck{GroupRef: g, Offset: 0, RequestID: 2}, 2)
	l.settled(&wire.GroupAck{GroupRef: g, Offset: 0, RequestID: 3}, 3) // again: harmless
	l.settled(&wire.GroupNack{GroupRef: g, Offset: 1, Attempts: 1, RequestID: 4}, 4)
	l.polled(p.poll(5, 100, 0), "1:b:2", "2:c:1", "3:d:1")
	l.polled(p.poll(6, 100, 0))
	for _, tc := range []struct{ ask, granted uint64 }{{60_000, 60_000}, {1 << 63, 12 * 3600 * 1000}} {
		m := l.ask(&wire.GroupExtend{GroupRef: g, Offset: 2, Attempts: 1, ExtendMS: tc.ask, RequestID: 7})
		if e, is := m.(*wire.GroupExtended); !is || e.RequestID != 7 || e.VisibleMS != tc.granted {
			t.Fatalf("extend by %d ms: %+v", tc.ask, m)
		}
	}
	dead := func(want ...uint64) {
		t.Helper()
		m := l.ask(&wire.GroupDeadLetters{GroupRef: g, RequestID: 8})
		if d, is := m.(*wire.GroupDeadLetterList); !is || d.RequestID != 8 || !reflect.DeepEqual(d.Offsets, append([]uint64{}, want...)) {
			t.Fatalf("dead letters: %+v, want %v", m, want)
		}
	}
	dead()
	l.settled(&wire.GroupDeadLetter{GroupRef: g, Offset: 3, RequestID: 9}, 9)
	l.settled(&wire.GroupDeadLetter{GroupRef: g, Offset: 2, RequestID: 10}, 10)
	dead(2, 3)
	l.settled(&wire.GroupRedrive{GroupRef: g, Offset: 3, RequestID: 11}, 11)
	dead(2)
	l.polled(p.poll(12, 100, 0), "3:d:1")
	l.settled(&wire.GroupDiscard{GroupRef: g, Offset: 2, RequestID: 13}, 13)
	dead()
	if info := l.describe(p); info.Committed != wire.Some[uint64](1) || info.Tail != 4 || info.InFlight != 2 || info.Owed != 0 || info.DeadLetters != 0 {
		t.Fatalf("describe with two in flight: %+v", info)
	}
	l.settled(&wire.GroupAck{GroupRef: g, Offset: 1, RequestID: 14}, 14)
	l.settled(&wire.GroupAck{GroupRef: g, Offset: 3, RequestID: 15}, 15)
	if info := l.describe(p); info.Committed != wire.Some[uint64](4) || info.InFlight != 0 || info.First.Value.State != wire.GroupAtTail {
		t.Fatalf("describe at the end: %+v", info)
	}

	seek := func(start wire.Start, ifNew bool, offset uint64, moved bool) {
		t.Helper()
		m := l.ask(&wire.GroupSeek{GroupRef: g, Start: start, IfNew: ifNew, RequestID: 16})
		if at, is := m.(*wire.GroupPosition); !is || *at != (wire.GroupPosition{Offset: offset, Moved: moved, RequestID: 16}) {
			t.Fatalf("seek to %+v: %+v", start, m)
		}
	}
	seek(wire.Start{Kind: wire.StartEarliest}, false, 0, true)
	seek(wire.Start{Kind: wire.StartLatest}, true, 0, false)
	seek(wire.Start{Kind: wire.StartOffset, Offset: 2}, false, 2, true)
	l.polled(p.poll(17, 1, 0), "2:c:1")
	seek(wire.Start{Kind: wire.StartLatest}, false, 4, true)
	l.polled(p.poll(18, 1, 0))
	for _, existed := range []bool{true, false} {
		m := l.ask(&wire.GroupDelete{GroupRef: g, RequestID: 19})
		if d, is := m.(*wire.GroupDeleted); !is || *d != (wire.GroupDeleted{Existed: existed, RequestID: 19}) {
			t.Fatalf("delete: %+v, want existed %v", m, existed)
		}
	}
	if info := l.describe(p); info.Committed.Set || info.Tail != 4 {
		t.Fatalf("describe of no group: %+v", info)
	}
	l.polled(p.poll(20, 1, 0), "0:a:1")
}

// A cursor and the dead letters outlive a restart.
func TestGroupsSurviveARestart(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(4)...)
	l := p.login(modern(), n.Token())
	l.polled(p.poll(1, 3, 0), "0:a:1", "1:b:1", "2:c:1")
	l.settled(&wire.GroupAck{GroupRef: p.group("g"), Offset: 0, RequestID: 2}, 2)
	l.settled(&wire.GroupDeadLetter{GroupRef: p.group("g"), Offset: 1, RequestID: 3}, 3)
	n.Restart()
	p = dial(t, n)
	l = p.login(modern(), n.Token())
	if info := l.describe(p); info.Committed != wire.Some[uint64](2) || info.DeadLetters != 1 || info.InFlight != 0 {
		t.Fatalf("describe after the restart: %+v", info)
	}
	l.polled(p.poll(4, 100, 0), "2:c:2", "3:d:1")
}

// What describe says beyond the original's fields: who has the records that
// hold the cursor, since when and until when, in pages.
func TestGroupDescribeHeld(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(4)...)
	l := p.login(modern(), n.Token())
	named := p.poll(1, 2, 0)
	named.Consumer, named.VisibilityMS = wire.Some("w1"), 3_600_000
	l.polled(named, "0:a:1", "1:b:1")
	l.polled(p.poll(2, 1, 0), "2:c:1")
	l.settled(&wire.GroupNack{GroupRef: p.group("g"), Offset: 1, RequestID: 3}, 3)
	l.settled(&wire.GroupNack{GroupRef: p.group("g"), Offset: 2, DelayMS: 60_000, RequestID: 4}, 4)

	info := l.describe(p)
	if info.HighWater != wire.Some[uint64](3) || info.MaxAttempts != 5 || info.Trimmed != 0 || info.Held != nil || info.HeldNext.Set || !info.NextLapseMicros.Set {
		t.Fatalf("describe: %+v", info)
	}
	first := info.First.Value
	if first.Offset != 0 || first.State != wire.GroupClaimed || first.Attempts != 1 || first.Consumer != wire.Some("w1") || first.Principal != wire.Some("tester") ||
		first.Connection == 0 || !first.SinceMicros.Set || first.UntilMicros.Value-first.SinceMicros.Value < 3_600_000_000 {
		t.Fatalf("the record that holds the cursor: %+v", first)
	}
	page := func(from uint64, limit uint32, next wire.Optional[uint64], want ...string) {
		t.Helper()
		info := l.ask(&wire.GroupDescribe{GroupRef: p.group("g"), RequestID: 5, Held: true, HeldFrom: from, HeldLimit: limit}).(*wire.GroupInfo)
		got := []string{}
		for _, h := range info.Held {
			got = append(got, fmt.Sprintf("%d:%s", h.Offset, h.State))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || info.HeldNext != next {
			t.Fatalf("held from %d: %v, next %+v, want %v, %+v", from, got, info.HeldNext, want, next)
		}
	}
	none := wire.Optional[uint64]{}
	page(0, 0, none, "0:claimed", "1:owed", "2:delayed")
	page(0, 2, wire.Some[uint64](2), "0:claimed", "1:owed")
	page(2, 2, none, "2:delayed")
}

// A member that comes back over a new connection is given first what it held,
// and others are not; once a connection (wire 12.2).
func TestGroupReclaim(t *testing.T) {
	n := startGroups(t)
	old := dial(t, n)
	old.produce(letters(5)...)
	member := func(p *peer, id uint64, name string, reclaim bool) *wire.GroupPoll {
		m := p.poll(id, 2, 0)
		m.Consumer, m.Reclaim = wire.Some(name), reclaim
		return m
	}
	first := old.login(modern(), n.Token())
	first.polled(member(old, 1, "w1", true), "0:a:1", "1:b:1")
	first.polled(member(old, 2, "w2", true), "2:c:1", "3:d:1")
	fresh := dial(t, n)
	second := fresh.login(modern(), n.Token())
	second.polled(member(fresh, 3, "w1", true), "0:a:2", "1:b:2")
	second.polled(member(fresh, 4, "w1", true), "4:e:1")
	other := fresh.login(modern(), n.TokenFor("another", time.Now().Add(time.Hour)))
	other.polled(member(fresh, 5, "w2", true))
}
