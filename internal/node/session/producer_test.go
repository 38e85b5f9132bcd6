package session_test

import (
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// A producer is one idempotent producer as a raw client.
type producer struct {
	*lane
	p  *peer
	id uint64
}

func (p *peer) producer(o wire.Offer) *producer {
	p.t.Helper()
	l := p.login(o, p.node.Token())
	l.say(&wire.ProducerInit{RequestID: 77})
	ok, is := l.message().(*wire.ProducerInitOK)
	if !is || ok.RequestID != 77 || ok.ProducerID == 0 {
		p.t.Fatalf("producer_init: %+v", ok)
	}
	return &producer{lane: l, p: p, id: ok.ProducerID}
}

// send publishes the batch of a number, in binary or as JSON.
func (r *producer) publish(requestID, sequence uint64, json bool, stream string, payloads ...string) wire.Message {
	r.t.Helper()
	bytes := make([][]byte, len(payloads))
	for i, s := range payloads {
		bytes[i] = []byte(s)
	}
	block := wire.AppendBlock(nil, bytes...)
	if json {
		r.say(&wire.PublishIdempotent{
			Tenant: r.p.node.Tenant(), Namespace: r.p.node.Namespace(), Stream: stream, Payloads: block,
			RequestID: requestID, ProducerID: r.id, Sequence: sequence,
		})
	} else {
		m := r.p.publish(requestID, stream)
		m.Idempotent, m.ProducerID, m.Sequence, m.Block = true, r.id, sequence, block
		r.send(m.Append(nil))
	}
	return r.message()
}

func expectOffset(t *testing.T, m wire.Message, requestID, offset uint64) {
	t.Helper()
	ok, is := m.(*wire.PublishOK)
	if !is || ok.RequestID != requestID || ok.Offset != wire.Some(offset) {
		t.Fatalf("answer %#v, want publish_ok of %d at %d", m, requestID, offset)
	}
}

func expectRefused(t *testing.T, m wire.Message, requestID uint64, want wire.RefusedReason) {
	t.Helper()
	refused, is := m.(*wire.PublishRefused)
	if !is || refused.RequestID != requestID || refused.Reason != want || refused.Message == "" {
		t.Fatalf("answer %#v, want refusal of %d as %+v", m, requestID, want)
	}
}

// The rules of numbered batches (wire 9.6), in both encodings and across a
// restart: each number is appended once, and every answer says what holds.
func TestIdempotentProducer(t *testing.T) {
	for _, json := range []bool{false, true} {
		name := "binary"
		if json {
			name = "json"
		}
		t.Run(name, func(t *testing.T) {
			n := felixtest.Start(t, felixtest.Durable())
			r := dial(t, n).producer(modern())
			expectOffset(t, r.publish(1, 0, json, "s", "a", "b"), 1, 0)
			expectOffset(t, r.publish(2, 1, json, "s", "c"), 2, 2)
			expectOffset(t, r.publish(3, 0, json, "s", "a", "b"), 3, 0) // the same again: the same outcome
			expectOffset(t, r.publish(4, 1, json, "s", "c"), 4, 2)
			expectRefused(t, r.publish(5, 5, json, "s", "f"), 5, wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: 2})
			expectRefused(t, r.publish(6, 1, json, "s", "other"), 6, wire.RefusedReason{Kind: wire.RefusedSequenceReused})
			n.Restart()
			again := dial(t, n).producer(modern())
			again.id = r.id
			expectOffset(t, again.publish(7, 1, json, "s", "c"), 7, 2)
			expectOffset(t, again.publish(8, 2, json, "s", "d"), 8, 3)
			stranger := dial(t, n).producer(modern())
			expectRefused(t, stranger.publish(9, 3, json, "s", "x"), 9, wire.RefusedReason{Kind: wire.RefusedUnknownProducer})
			expectOffset(t, stranger.publish(10, 0, json, "s", "e"), 10, 4)
			// Numbers older than what is remembered are gone.
			for seq := uint64(3); seq < 80; seq++ {
				expectOffset(t, again.publish(seq, seq, json, "s", "x"), seq, seq+2)
			}
			expectRefused(t, again.publish(11, 0, json, "s", "a", "b"), 11, wire.RefusedReason{Kind: wire.RefusedSequenceExpired})
		})
	}
}

// A client that does not know that a number can have been reused is told that
// its batch is held, and nothing is appended.
func TestSequenceReusedIsNegotiated(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	o := modern()
	o.Features &^= wire.FeatureSequenceReused
	r := dial(t, n).producer(o)
	expectOffset(t, r.publish(1, 0, false, "s", "a"), 1, 0)
	expectOffset(t, r.publish(2, 0, false, "s", "other"), 2, 0)
	expectOffset(t, r.publish(3, 1, false, "s", "b"), 3, 1)
}

// In memory, numbers are kept as long as the stream, and answers have no
// offset.
func TestIdempotentProducerInMemory(t *testing.T) {
	n := felixtest.Start(t)
	r := dial(t, n).producer(modern())
	for i, want := range []uint64{0, 1, 0, 1} {
		m := r.publish(uint64(i), want, false, "s", "x")
		if ok, is := m.(*wire.PublishOK); !is || ok.Offset.Set {
			t.Fatalf("answer %d: %#v", i, m)
		}
	}
	expectRefused(t, r.publish(9, 9, true, "s", "x"), 9, wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: 2})
}

// What is no matter of numbers is answered in JSON, too, and the stream goes
// on unless a right is missing.
func TestIdempotentRefusals(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("auto-create", "false"))
	n.CreateStreamWith("good", broker.StreamOptions{Durable: true})
	r := dial(t, n).producer(modern())
	if m, is := r.publish(1, 0, false, "missing", "x").(*wire.PublishError); !is || m.RequestID != 1 || m.Code.Value != "not_found" {
		t.Fatalf("unknown stream: %#v", m)
	}
	if m, is := r.publish(2, 0, true, "missing", "x").(*wire.PublishError); !is || m.RequestID != 2 || m.Code.Value != "not_found" {
		t.Fatalf("unknown stream: %#v", m)
	}
	frame := r.p.publish(3, "good", []byte("x"))
	frame.Idempotent = true
	bad := frame.Append(nil)
	bad[len(bad)-2] = 0xff
	r.send(bad)
	if m, is := r.message().(*wire.PublishError); !is || m.RequestID != 3 || m.Code.Value != "invalid_request" {
		t.Fatalf("malformed batch: %#v", m)
	}
	expectOffset(t, r.publish(4, 0, false, "good", "x"), 4, 0)
}
