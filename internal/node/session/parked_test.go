package session_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/wire"
)

// stuck is a node whose stream "stuck" cannot flush, with room in its budgets
// for three batches of the test, and that stream's gate.
func stuck(t *testing.T) (*felixtest.Node, *handClock, *fstest.Gate) {
	t.Helper()
	files, clock := fstest.NewFaults(fs.OS()), newHandClock()
	n := felixtest.Start(t, felixtest.WithFileSystem(files), felixtest.WithClock(clock),
		felixtest.WithSetting("pub-conn-inflight-bytes", "64KiB"), felixtest.WithSetting("storage-journal-bytes", "0"))
	l := dial(t, n).login(modern(), n.Token())
	l.say(&wire.CachePut{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), Value: []byte("v"), RequestID: wire.Some[uint64](1)})
	if _, is := l.message().(*wire.CacheOK); !is {
		t.Fatal("put")
	}
	p := dial(t, n)
	l = p.login(modern(), n.Token())
	l.send(p.publish(0, "stuck", []byte("first")).Append(nil))
	if a := l.ack(); a.Failed || a.Offset != 0 {
		t.Fatalf("first publish: %+v", a)
	}
	gate := files.Block(fstest.OpSync, "_stuck_")
	t.Cleanup(gate.Open)
	return n, clock, gate
}

const parkedCount = 12

// fill sends more batches than the budgets have room for, in one go, and a get
// behind them.
func fill(p *peer, l *lane) {
	var out []byte
	for i := range uint64(parkedCount) {
		out = p.publish(i, "stuck", bytes.Repeat([]byte{byte(i)}, 20<<10)).Append(out)
	}
	out = wire.AppendMessage(out, &wire.CacheGet{Tenant: p.node.Tenant(), Namespace: p.node.Namespace(), Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](99)})
	l.send(out)
}

// Publishes that find no room wait away from their stream's reader: what comes
// behind them is served meanwhile, and in the end all are acknowledged, in
// their order.
func TestPublishesWithoutRoomDoNotHoldUpTheirStream(t *testing.T) {
	n, _, gate := stuck(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	fill(p, l)
	if v, is := l.message().(*wire.CacheValue); !is || v.RequestID != wire.Some[uint64](99) || string(v.Value.Value) != "v" {
		t.Fatalf("get behind the publishes: %+v", v)
	}
	// Behind the parked ones, more than may be parked: the reader waits, too.
	const more = 20
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range uint64(more) {
			_, _ = l.st.Write(p.publish(parkedCount+i, "stuck", bytes.Repeat([]byte{byte(i)}, 20<<10)).Append(nil))
		}
	}()
	gate.Open()
	for i := range uint64(parkedCount + more) {
		if a := l.ack(); a.Failed || a.RequestID != i || a.Offset != 1+i {
			t.Fatalf("ack %d: %+v", i, a)
		}
	}
	<-sent
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "stuck", Start: wire.Some(wire.StartAt(1))})
	for next := uint64(0); next < parkedCount; {
		b := sub.batch()
		for _, e := range b.All() {
			if next < parkedCount && (len(e.Payload) != 20<<10 || e.Payload[0] != byte(next)) {
				t.Fatalf("record %d begins with %d", next, e.Payload[0])
			}
			next++
		}
	}
}

// What waits for room for too long is refused as overloaded, with nothing
// kept; what was handed over and is not confirmed is told as unknown. Both in
// request order.
func TestPublishesWithoutRoomAreRefusedInTheEnd(t *testing.T) {
	n, clock, gate := stuck(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	fill(p, l)
	if v, is := l.message().(*wire.CacheValue); !is || v.RequestID != wire.Some[uint64](99) {
		t.Fatalf("get behind the publishes: %+v", v)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // each that waits begins to when the one before is refused
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				clock.advance(100 * time.Millisecond)
			}
		}
	}()
	unknown, refused := 0, 0
	for i := range uint64(parkedCount) {
		a := l.ack()
		switch {
		case a.RequestID != i || !a.Failed:
			t.Fatalf("answer %d: %+v", i, a)
		case a.Code == wire.CodeUnacknowledged && a.Retry == wire.OutcomeUnknown && refused == 0:
			unknown++
		case a.Code == wire.CodeOverloaded && a.Retry == wire.RetryAfter:
			refused++
		default:
			t.Fatalf("answer %d: %v %v", i, a.Code, a.Retry)
		}
	}
	if unknown != 3 || refused != parkedCount-3 {
		t.Fatalf("%d unknown and %d refused", unknown, refused)
	}
	gate.Open()
	waitFor(t, "what was handed over", func() bool {
		l.send(p.publish(1000, "other", []byte("x")).Append(nil)) // the stream still serves
		a := l.ack()
		return !a.Failed && a.RequestID == 1000
	})
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "stuck", Start: wire.Some(wire.StartAt(1))})
	for next := uint64(1); next < 4; {
		b := sub.batch()
		if b.BaseOffset != next || next+uint64(b.Count()) > 4 {
			t.Fatalf("%d records at %d, want %d", b.Count(), b.BaseOffset, next)
		}
		next += uint64(b.Count())
	}
}

// Unacked publishes keep their place behind what is parked.
func TestUnackedPublishesKeepTheirPlace(t *testing.T) {
	n, _, gate := stuck(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	fill(p, l)
	l.message()
	unacked := p.publish(0, "stuck", []byte("unacked"))
	unacked.Acked = false
	l.send(unacked.Append(nil))
	l.send(p.publish(parkedCount, "stuck", []byte("behind")).Append(nil))
	gate.Open()
	for i := range uint64(parkedCount) {
		if a := l.ack(); a.Failed || a.RequestID != i {
			t.Fatalf("ack %d: %+v", i, a)
		}
	}
	if a := l.ack(); a.Failed || a.RequestID != parkedCount || a.Offset != 1+parkedCount+1 {
		t.Fatalf("the one behind: %+v", a)
	}
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "stuck", Start: wire.Some(wire.StartAt(1 + parkedCount))})
	if b := sub.batch(); b.BaseOffset != 1+parkedCount {
		t.Fatalf("unacked batch at %d", b.BaseOffset)
	}
}

// A pipeline to durable streams of every kind, with one bad request at each of
// many places: exactly the bad one fails, with its own id and code, and the
// rest is acknowledged in order (BR-21).
func TestOneRefusedDurablePublishDoesNotDisturbOthers(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("auto-create", "false"))
	for _, name := range []string{"good", "numbered", "locked"} {
		n.CreateStream(name, 1)
	}
	tenant, ns := n.Tenant(), n.Namespace()
	token := n.Token("stream.publish:stream:"+tenant+"/"+ns+"/good", "stream.publish:stream:"+tenant+"/"+ns+"/numbered", "stream.publish:stream:"+tenant+"/"+ns+"/missing")
	p := dial(t, n)
	const count = 256
	for _, kind := range []string{"unknown stream", "forbidden", "foreign tenant", "malformed body", "sequence gap"} {
		for _, at := range []uint64{0, 1, 101, 254, 255} {
			t.Run(fmt.Sprintf("%s at %d", kind, at), func(t *testing.T) {
				l := p.login(modern(), token)
				l.say(&wire.ProducerInit{RequestID: 1})
				id := l.message().(*wire.ProducerInitOK).ProducerID
				var out []byte
				sequence := uint64(0)
				numbered := func(i uint64) bool { return i%3 == 2 || kind == "sequence gap" && i == at }
				for i := range uint64(count) {
					m := p.publish(i, "good", []byte("x"))
					if numbered(i) {
						m = p.publish(i, "numbered", []byte("x"))
						m.Idempotent, m.ProducerID, m.Sequence = true, id, sequence
						if i != at {
							sequence++
						}
					}
					if i != at {
						out = m.Append(out)
						continue
					}
					switch kind {
					case "unknown stream":
						m.Stream = []byte("missing")
					case "forbidden":
						m.Stream = []byte("locked")
					case "foreign tenant":
						m.Tenant = []byte("other")
					case "sequence gap":
						m.Sequence += 1000
					}
					frame := m.Append(nil)
					if kind == "malformed body" {
						frame[len(frame)-2] = 0xff // the record's length
					}
					out = append(out, frame...)
				}
				l.send(out)
				for i := range uint64(count) {
					h, payload := l.frame()
					got, failed, code := answerOf(t, h, payload)
					want := i == at
					if got != i || failed != want || (h.Flags == 0) != numbered(i) {
						t.Fatalf("answer %d is of %d, failed %v: %q", i, got, failed, payload)
					}
					codes := map[string]string{
						"unknown stream": "not_found", "forbidden": "forbidden", "foreign tenant": "forbidden",
						"malformed body": "invalid_request", "sequence gap": "sequence_gap",
					}
					if at < 2 && kind == "sequence gap" { // of a producer that has published nothing yet
						codes[kind] = "unknown_producer"
					}
					if failed && code != codes[kind] {
						t.Fatalf("refused as %s, want %s", code, codes[kind])
					}
				}
			})
		}
	}
}

// answerOf reads the answer to a publish in either encoding.
func answerOf(t *testing.T, h wire.Header, payload []byte) (id uint64, failed bool, code string) {
	t.Helper()
	if h.Flags != 0 {
		var a wire.Ack
		if err := wire.ParseAck(h.Flags, payload, &a); err != nil {
			t.Fatal(err)
		}
		return a.RequestID, a.Failed, a.Code.String()
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		t.Fatal(err)
	}
	switch m := m.(type) {
	case *wire.PublishOK:
		return m.RequestID, false, ""
	case *wire.PublishError:
		return m.RequestID, true, m.Code.Value
	case *wire.PublishRefused:
		return m.RequestID, true, m.Reason.Kind.String()
	}
	t.Fatalf("answer %#v", m)
	return 0, false, ""
}
