package session_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

func (p *peer) read(from uint64) *wire.StreamRead {
	return &wire.StreamRead{Tenant: p.node.Tenant(), Namespace: p.node.Namespace(), Stream: "s", From: from, RequestID: 5}
}

// stream_read returns pages of committed records with their times, within the
// bounds asked for, and says where to go on; the same cursor errors as
// subscribe (wire 10).
func TestStreamRead(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("record-publishers", "true"))
	n.CreateStreamWith("memory", broker.StreamOptions{})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for i := range uint64(10) {
		l.send(p.publish(i, "s", fmt.Appendf(nil, "a%d", i), fmt.Appendf(nil, "b%d", i)).Append(nil))
		l.ack()
	}
	page := func(m *wire.StreamRead) *wire.StreamRecords {
		t.Helper()
		l.say(m)
		r, is := l.message().(*wire.StreamRecords)
		if !is || r.RequestID != 5 {
			t.Fatalf("stream_read: %#v", r)
		}
		for i, rec := range r.Records {
			at := m.From + uint64(i)
			if rec.Offset != at || string(rec.Payload) != fmt.Sprintf("%c%d", "ab"[at%2], at/2) || rec.TimestampMicros == 0 || rec.Publisher != wire.Some("tester") {
				t.Fatalf("record %d: %+v", i, rec)
			}
		}
		return r
	}
	if r := page(p.read(0)); len(r.Records) != 20 || r.NextOffset != 20 {
		t.Fatalf("whole: %d records, next %d", len(r.Records), r.NextOffset)
	}
	some := p.read(3)
	some.MaxRecords = 4
	if r := page(some); len(r.Records) != 4 || r.NextOffset != 7 {
		t.Fatalf("by count: %d records, next %d", len(r.Records), r.NextOffset)
	}
	some = p.read(3)
	some.MaxBytes = 5
	if r := page(some); len(r.Records) != 2 || r.NextOffset != 5 {
		t.Fatalf("by bytes: %d records, next %d", len(r.Records), r.NextOffset)
	}
	some = p.read(3)
	some.End = wire.Some[uint64](5)
	if r := page(some); len(r.Records) != 2 || r.NextOffset != 5 {
		t.Fatalf("to an end: %d records, next %d", len(r.Records), r.NextOffset)
	}
	some.End = wire.Some[uint64](0)
	if r := page(some); len(r.Records) != 0 || r.NextOffset != 3 {
		t.Fatalf("to an end before it begins: %d records, next %d", len(r.Records), r.NextOffset)
	}
	if r := page(p.read(20)); len(r.Records) != 0 || r.NextOffset != 20 {
		t.Fatalf("at the tail: %d records, next %d", len(r.Records), r.NextOffset)
	}
	l.say(p.read(21))
	if e, is := l.message().(*wire.SubscribeCursorError); !is || e.Reason != wire.CursorInFuture || e.Requested != 21 || e.Available != 20 {
		t.Fatalf("past the tail: %+v", e)
	}
	bad := p.read(0)
	bad.Shard = 1
	l.say(bad)
	expectError(t, l.message(), "invalid_request", "fatal")
	bad = p.read(0)
	bad.Stream = "memory"
	l.say(bad)
	expectError(t, l.message(), "invalid_request", "fatal")
}

// A record that fits no answer is refused by its offset, and those beside it
// can be read.
func TestStreamReadOfALargeRecord(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for i, size := range []int{1, 14 << 20, 5 << 20, 1} {
		l.send(p.publish(uint64(i), "s", bytes.Repeat([]byte("x"), size)).Append(nil))
		if a := l.ack(); a.Failed || a.Offset != uint64(i) {
			t.Fatalf("publish %d: %+v", i, a)
		}
	}
	l.say(p.read(0))
	if r := l.message().(*wire.StreamRecords); len(r.Records) != 1 || r.NextOffset != 1 {
		t.Fatalf("first page: %d records, next %d", len(r.Records), r.NextOffset)
	}
	l.say(p.read(1))
	expectError(t, l.message(), "limit_exceeded", "fatal")
	l.say(p.read(2)) // over the page's bound, and alone in it
	if r := l.message().(*wire.StreamRecords); len(r.Records) != 1 || len(r.Records[0].Payload) != 5<<20 || r.NextOffset != 3 {
		t.Fatalf("third record: %d records, next %d", len(r.Records), r.NextOffset)
	}
}

// offset_for_time finds the first record not older than a time, and nothing
// where there is none yet (wire 7.6).
func TestOffsetForTime(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	ask := func(micros uint64) wire.Optional[uint64] {
		t.Helper()
		l.say(&wire.OffsetForTime{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", AtMicros: micros, RequestID: 6})
		v, is := l.message().(*wire.OffsetValue)
		if !is || v.RequestID != 6 {
			t.Fatalf("offset_for_time: %+v", v)
		}
		return v.Offset
	}
	if got := ask(0); got.Set {
		t.Fatalf("in an empty stream: %+v", got)
	}
	for i := range uint64(3) {
		l.send(p.publish(i, "s", []byte("a"), []byte("b")).Append(nil))
		l.ack()
	}
	l.say(p.read(0))
	records := l.message().(*wire.StreamRecords).Records
	for _, tc := range []struct {
		micros uint64
		want   wire.Optional[uint64]
	}{
		{0, wire.Some[uint64](0)},
		{records[0].TimestampMicros, wire.Some[uint64](0)},
		{records[5].TimestampMicros + 1, wire.Optional[uint64]{}},
	} {
		if got := ask(tc.micros); got != tc.want {
			t.Fatalf("at %d: %+v, want %+v", tc.micros, got, tc.want)
		}
	}
	last := ask(records[4].TimestampMicros)
	if !last.Set || records[last.Value].TimestampMicros != records[4].TimestampMicros {
		t.Fatalf("at the last batch's time: %+v of %+v", last, records)
	}
}

// Reading by offset needs the right to subscribe, and without it the stream
// ends.
func TestReadsNeedTheRightToSubscribe(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	token := n.Token("stream.publish:stream:" + n.Tenant() + "/*")
	p := dial(t, n)
	for _, m := range []wire.Message{
		p.read(0),
		&wire.OffsetForTime{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s"},
		&wire.StateGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", EntityKey: []byte("e"), Key: []byte("k")},
	} {
		l := p.login(modern(), token)
		l.say(m)
		expectError(t, l.message(), "forbidden", "fatal")
		l.ended()
	}
}
