package client

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/wire"
)

// ackAll answers every publish at once, with consecutive offsets.
func ackAll(s *peerStream) {
	offset := uint64(100)
	for {
		p, ok := s.publish()
		if !ok {
			s.CloseWrite()
			return
		}
		if p.Acked {
			s.ack(wire.Ack{RequestID: p.RequestID, HasOffset: true, Offset: offset})
		}
		offset += uint64(p.Block.Count())
	}
}

func TestPublishSendsOneFrameAndReturnsItsAck(t *testing.T) {
	seen := make(chan *wire.Publish, 1)
	p := newPeer(t, func(s *peerStream) {
		m, ok := s.publish()
		if !ok {
			return
		}
		seen <- m
		s.ack(wire.Ack{RequestID: m.RequestID, HasOffset: true, Offset: 42})
		s.next()
	})
	c := dial(t, []string{p.addr()})
	ack, err := c.Publish(testContext(t), "orders", []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if !ack.HasOffset || ack.Offset != 42 {
		t.Errorf("ack = %+v, want offset 42", ack)
	}
	m := <-seen
	if !m.Acked || m.AckMode != wire.AckPerMessage || m.Keyed ||
		string(m.Tenant) != "t1" || string(m.Namespace) != "default" || string(m.Stream) != "orders" {
		t.Errorf("publish = %+v", m)
	}
	if m.Block.Count() != 1 || m.Block.PayloadBytes() != 5 {
		t.Errorf("block = %d records, %d bytes", m.Block.Count(), m.Block.PayloadBytes())
	}
	auth := p.firstAuth()
	if got := auth.ClientFlags.Value; got != 0x1FFF {
		t.Errorf("client_flags = %#x, want 0x1FFF", uint16(got))
	}
	if got := auth.ClientFeatures.Value; got != 0xFB77_FFFF {
		t.Errorf("client_features = %#x, want 0xFB77FFFF", uint32(got))
	}
	if got := auth.ClientFeaturesHi.Value; got != 1 {
		t.Errorf("client_features_hi = %d, want 1", got)
	}
}

func TestPublishOptionsReachTheFrame(t *testing.T) {
	seen := make(chan *wire.Publish, 8)
	p := newPeer(t, func(s *peerStream) {
		h, payload, ok := s.next()
		if !ok {
			return
		}
		if h.Flags == 0 {
			m, err := wire.ParseMessage(payload)
			if err != nil {
				t.Error(err)
				return
			}
			ask := m.(*wire.StreamShards)
			s.send(&wire.StreamShardsView{Shards: 4, RequestID: ask.RequestID})
			s.CloseWrite()
			return
		}
		for {
			m := new(wire.Publish)
			if err := wire.ParsePublish(h.Flags, bytes.Clone(payload), m); err != nil {
				t.Error(err)
				return
			}
			seen <- m
			s.ack(wire.Ack{RequestID: m.RequestID})
			if h, payload, ok = s.next(); !ok {
				return
			}
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	ack, err := c.PublishBatch(ctx, "s", [][]byte{nil, []byte("x")}, WithKey([]byte("k1")), InNamespace("other"))
	if err != nil {
		t.Fatal(err)
	}
	m := <-seen
	if !m.Keyed || string(m.Key) != "k1" || string(m.Namespace) != "other" || m.AckMode != wire.AckPerBatch || m.Block.Count() != 2 {
		t.Errorf("publish = %+v", m)
	}
	if want := wire.ShardOf([]byte("k1"), true, 4, wire.Modulo); ack.Shard != want {
		t.Errorf("ack.Shard = %d, want %d", ack.Shard, want)
	}
	if ack.HasOffset {
		t.Error("an ack without an offset reports one")
	}
	// An empty key is a key.
	if _, err := c.Publish(ctx, "s", nil, WithKey(nil), InNamespace("other")); err != nil {
		t.Fatal(err)
	}
	if m := <-seen; !m.Keyed || len(m.Key) != 0 {
		t.Errorf("empty key: keyed %v, key %q", m.Keyed, m.Key)
	}
}

func TestPublishFallsBackToJSON(t *testing.T) {
	cases := []struct {
		name   string
		answer func(*wire.Auth) wire.Message
		opts   []PublishOption
		want   string // of the frame: its kind and what matters
	}{
		{"legacy acked", legacy, nil, "publish_batch per_message"},
		{"legacy keyed", legacy, []PublishOption{WithKey([]byte("k"))}, "publish_batch per_message key=k"},
		{"legacy unacked", legacy, []PublishOption{WithAck(AckNone)}, "binary 0x0001"},
		{"legacy unacked keyed", legacy, []PublishOption{WithAck(AckNone), WithKey([]byte("k"))}, "publish_batch none key=k"},
		{"acked not advertised", offering(wire.OriginalFlags|wire.FlagPublishKeyed, 0), []PublishOption{WithKey([]byte("k"))}, "publish_batch per_message key=k"},
		{"keyed not advertised", offering(wire.OriginalFlags|wire.FlagPublishAcked, 0), []PublishOption{WithKey([]byte("k"))}, "publish_batch per_message key=k"},
		{"keyed not needed", offering(wire.OriginalFlags|wire.FlagPublishAcked, 0), nil, "binary 0x0009"},
		{"all", fullOffer, nil, "binary 0x0009"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			seen := make(chan string, 1)
			p := newPeer(t, func(s *peerStream) {
				h, payload, ok := s.next()
				if !ok {
					return
				}
				if h.Flags != 0 {
					seen <- fmt.Sprintf("binary %#04x", uint16(h.Flags))
					var m wire.Publish
					if err := wire.ParsePublish(h.Flags, payload, &m); err != nil {
						t.Error(err)
					}
					if m.Acked {
						s.ack(wire.Ack{RequestID: m.RequestID})
					}
				} else {
					m, err := wire.ParseMessage(payload)
					if err != nil {
						t.Error(err)
						return
					}
					b, ok := m.(*wire.JSONPublishBatch)
					if !ok {
						t.Errorf("got %s", m.MessageType())
						return
					}
					what := b.MessageType() + " " + b.Ack.Value.String()
					if b.Key.Set {
						what += " key=" + string(b.Key.Value)
					}
					seen <- what
					if id, ok := b.RequestID.Get(); ok {
						s.send(&wire.PublishOK{RequestID: id})
					}
				}
				s.next()
			})
			p.setAnswer(tc.answer)
			c := dial(t, []string{p.addr()})
			if _, err := c.Publish(testContext(t), "s", []byte("x"), tc.opts...); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != tc.want {
				t.Errorf("sent %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPublishRefusals(t *testing.T) {
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			a := wire.Ack{RequestID: m.RequestID, Failed: true, Message: "no"}
			switch string(m.Stream) {
			case "overloaded":
				a.HasCode, a.Code, a.Retry = true, wire.CodeOverloaded, wire.RetryAfter
				a.HasDetail, a.Detail = true, wire.Detail{Reason: "publish_queue_full", RetryAfterMS: 10}
			case "quorum":
				a.HasCode, a.Code, a.Retry = true, wire.CodeQuorumTimeout, wire.OutcomeUnknown
			case "newer":
				a.HasCode, a.Code, a.Retry = true, 77, 9
			case "forbidden":
				a.Message = "Forbidden here"
			case "fine":
				a = wire.Ack{RequestID: m.RequestID}
			}
			s.ack(a)
		}
	})
	c := dial(t, []string{p.addr()}, WithPools(Pools{PublishStreams: 1}))
	ctx := testContext(t)
	cases := []struct {
		stream string
		code   Code
		retry  RetryClass
		is     error
	}{
		{"overloaded", CodeOverloaded, RetryLater, ErrOverloaded},
		{"quorum", CodeQuorumTimeout, RetryUnknown, ErrOutcomeUnknown},
		{"newer", "code_77", RetryNever, nil},
		{"forbidden", "", RetryNever, nil},
		{"plain", "", RetryNow, nil},
	}
	for _, tc := range cases {
		_, err := c.Publish(ctx, tc.stream, nil)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: error %v", tc.stream, err)
		}
		if e.Code != tc.code || e.Retry != tc.retry {
			t.Errorf("%s: code %q retry %v, want %q %v", tc.stream, e.Code, e.Retry, tc.code, tc.retry)
		}
		if tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v is not %v", tc.stream, err, tc.is)
		}
		if e.RequestID == 0 {
			t.Errorf("%s: no request id", tc.stream)
		}
		if tc.stream == "overloaded" && (e.Reason != "publish_queue_full" || e.RetryAfter.Milliseconds() != 10) {
			t.Errorf("overloaded: reason %q, retry after %v", e.Reason, e.RetryAfter)
		}
	}
	if _, err := c.Publish(ctx, "fine", nil); err != nil {
		t.Errorf("after refusals: %v", err)
	}
	if n := p.authCount(); n != 1 {
		t.Errorf("%d streams were opened, want 1: a refusal is no reason for another", n)
	}
}

// TestARefusalDisturbsNoOther sends a pipeline with one bad batch in it, at
// every tenth position.
func TestARefusalDisturbsNoOther(t *testing.T) {
	const n = 100
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			a := wire.Ack{RequestID: m.RequestID, HasOffset: true, Offset: m.RequestID}
			if strings.HasPrefix(string(m.Block[8:]), "bad") {
				a = wire.Ack{RequestID: m.RequestID, Failed: true, Message: "forbidden", HasCode: true, Code: wire.CodeForbidden, Retry: wire.Fatal}
			}
			s.ack(a)
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	for bad := 0; bad < n; bad += 10 {
		pub := c.Publisher("s")
		var pending []*Pending
		for i := range n {
			payload := []byte("good")
			if i == bad {
				payload = []byte("bad!")
			}
			f, err := pub.Send(ctx, payload)
			if err != nil {
				t.Fatal(err)
			}
			pending = append(pending, f)
		}
		for i, f := range pending {
			_, err := f.Wait(ctx)
			if (i == bad) != errors.Is(err, ErrForbidden) || i != bad && err != nil {
				t.Fatalf("bad %d: batch %d: %v", bad, i, err)
			}
		}
		if err := pub.Flush(ctx); !errors.Is(err, ErrForbidden) {
			t.Errorf("flush: %v, want the refusal", err)
		}
		if err := pub.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestAcksAreMatchedByIDInAnyOrder(t *testing.T) {
	const n = 50
	p := newPeer(t, func(s *peerStream) {
		var got []*wire.Publish
		for len(got) < n {
			m, ok := s.publish()
			if !ok {
				return
			}
			got = append(got, m)
		}
		slices.Reverse(got)
		for _, m := range got {
			s.ack(wire.Ack{RequestID: m.RequestID, HasOffset: true, Offset: uint64(m.Block[8])})
		}
		s.next()
	})
	p.setAnswer(offering(wire.KnownFlags, 0)) // no pipelining: completion order
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	pub := c.Publisher("s")
	var pending []*Pending
	for i := range n {
		f, err := pub.Send(ctx, []byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, f)
	}
	for i, f := range pending {
		ack, err := f.Wait(ctx)
		if err != nil || ack.Offset != uint64(i) {
			t.Fatalf("batch %d: %+v, %v", i, ack, err)
		}
	}
}

func TestLocalRefusals(t *testing.T) {
	p := newPeer(t, ackAll)
	c := dial(t, []string{p.addr()}, WithMaxFrame(1<<10))
	ctx := testContext(t)
	var name *NameError
	if _, err := c.Publish(ctx, "a/b", nil); !errors.As(err, &name) || name.Kind != "stream" {
		t.Errorf("bad name: %v", err)
	}
	if _, err := c.Publish(ctx, "s", nil, InNamespace("..")); !errors.As(err, &name) || name.Kind != "namespace" {
		t.Errorf("bad namespace: %v", err)
	}
	if _, err := c.PublishBatch(ctx, "s", nil); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("empty batch: %v", err)
	}
	if _, err := c.Publish(ctx, "s", make([]byte, 2<<10)); !errors.Is(err, ErrInvalidRequest) || !strings.Contains(err.Error(), "1024") {
		t.Errorf("oversize: %v", err)
	}
	if _, err := c.Publish(ctx, "s", nil, WithKey(make([]byte, 1<<16))); !errors.As(err, &name) {
		t.Errorf("oversize key: %v", err)
	}
	if _, err := c.Publish(ctx, "s", make([]byte, 900)); err != nil {
		t.Errorf("a batch that fits: %v", err)
	}
	if n := c.inflight.usedNow(); n != 0 {
		t.Errorf("%d bytes of the budget are lost", n)
	}
}
