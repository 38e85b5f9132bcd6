package conformance

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// TestLegacyClient holds the node to wire 21: what a client that offers
// nothing must still get, and get no more than.
func TestLegacyClient(t *testing.T) {
	onBoth(t, testLegacyClient)
}

func testLegacyClient(t *testing.T, options ...felixtest.Option) {
	n := felixtest.Start(t, append(options, felixtest.WithSetting("auto-create", "false"))...)
	n.CreateStream("s", 1)
	n.CreateStream("wide", 4)
	n.CreateCache("primary")
	c := dialRaw(t, n)
	encode := base64.StdEncoding.EncodeToString

	t.Run("features without flags are answered ok", func(t *testing.T) {
		c := c.in(t)
		s := c.open()
		s.frames(raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": n.Token(), "client_features": 0xFFFF}))
		s.wantText(`{"type":"ok"}`)
	})
	t.Run("JSON publishes", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(
			raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"YQ==","request_id":1}`),
			raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"","key":"aw==","request_id":2,"ack":"per_batch"}`),
			raw.JSON(`{"type":"publish_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":["YQ==","Yg=="],"request_id":3}`),
			raw.JSON(`{"type":"publish_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":["YQ==","Yg=="],"request_id":18446744073709551615,"ack":"per_message"}`),
		)
		ids := make(map[string]bool)
		for range 4 {
			f := s.frame()
			id, _ := f.Uint("request_id")
			if want := fmt.Sprintf(`{"type":"publish_ok","request_id":%d}`, id); string(f.Payload) != want {
				t.Fatalf("got %s, want %s", f.Describe(), want)
			}
			ids[fmt.Sprint(id)] = true
		}
		if len(ids) != 4 {
			t.Fatalf("answers for %v", ids)
		}
		// Not acknowledged: no answer of any kind, so the next one is the get's.
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"YQ==","ack":"none"}`))
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"nowhere","payload":"YQ==","ack":"none"}`))
		s.wantAlive()
		// Answered behind it: what was not acknowledged is written by now.
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"YQ==","request_id":6}`))
		s.wantText(`{"type":"publish_ok","request_id":6}`)
	})
	t.Run("acked JSON publish without request id", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"YQ=="}`))
		s.wantJSON(`{"type":"error","message":"missing request_id for acked publish"}`)
		s.frames(raw.JSON(`{"type":"publish_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":["YQ=="]}`))
		s.wantJSON(`{"type":"error","message":"missing request_id for acked publish batch"}`)
		s.wantAlive()
	})
	t.Run("failed publish has no code", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"nowhere","payload":"YQ==","request_id":5}`))
		f := s.frame()
		want := fmt.Sprintf(`{"type":"publish_error","request_id":5,"message":%q}`, f.String("message"))
		if string(f.Payload) != want || !strings.Contains(f.String("message"), "stream not found") {
			t.Fatalf("got %s", f.Describe())
		}
	})
	t.Run("unacked binary batch", func(t *testing.T) {
		c := c.in(t)
		sub := c.legacy()
		sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s","start":"latest"}`))
		id, _ := sub.frame().Uint("subscription_id")
		events := c.acceptEvents()
		events.wantText(fmt.Sprintf(`{"type":"event_stream_hello","subscription_id":%d}`, id))
		s := c.legacy()
		s.frames(raw.Publish{Flags: raw.FlagPublishBatch, Tenant: "t1", Namespace: "default", Stream: "s", Records: [][]byte{[]byte("bin")}}.Frame())
		wantPlainEvent(t, events.frame(), id, "bin")
		// The bits it did not offer are accepted if it sends them all the same.
		s.frames(raw.Publish{Flags: raw.FlagPublishBatch | raw.FlagPublishAcked, RequestID: 9, AckMode: 1,
			Tenant: "t1", Namespace: "default", Stream: "s", Records: [][]byte{[]byte("acked")}}.Frame())
		if f, want := s.frame(), (raw.Ack{RequestID: 9}).Frame(); f.Flags != want.Flags || string(f.Payload) != string(want.Payload) {
			t.Fatalf("ack: got %s, want %s", f.Describe(), want.Describe())
		}
		wantPlainEvent(t, events.frame(), id, "acked")
	})
	t.Run("failed binary ack has no code", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.Publish{Flags: raw.FlagPublishBatch | raw.FlagPublishAcked, RequestID: 9, AckMode: 2,
			Tenant: "t1", Namespace: "default", Stream: "nowhere", Records: [][]byte{nil}}.Frame())
		f := s.frame()
		a, err := raw.ParseAck(f)
		if err != nil || f.Flags != raw.FlagPublishAck || a.Status != 1 || a.RequestID != 9 || !strings.Contains(a.Message, "stream not found") {
			t.Fatalf("ack %s: %v", f.Describe(), err)
		}
	})
	t.Run("replay has no offsets", func(t *testing.T) {
		c := c.in(t)
		n.CreateStream("replay", 1)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"replay","payload":"YQ==","request_id":1}`))
		s.wantText(`{"type":"publish_ok","request_id":1}`)
		sub := c.legacy()
		sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"replay","start":"earliest"}`))
		sub.fin()
		f := sub.frame()
		id, _ := f.Uint("subscription_id")
		if want := fmt.Sprintf(`{"type":"subscribed","subscription_id":%d}`, id); string(f.Payload) != want {
			t.Fatalf("got %s, want %s", f.Describe(), want)
		}
		events := c.acceptEvents()
		events.wantText(fmt.Sprintf(`{"type":"event_stream_hello","subscription_id":%d}`, id))
		wantPlainEvent(t, events.frame(), id, "a")
	})
	t.Run("errors have only a message", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"nowhere"}`))
		f := s.frame()
		if want := fmt.Sprintf(`{"type":"error","message":%q}`, f.String("message")); string(f.Payload) != want {
			t.Fatalf("got %s", f.Describe())
		}
		s = c.legacy()
		s.frames(raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"nowhere","key":"k","request_id":1}`))
		s.wantText(`{"type":"error","message":"cache scope not found: t1/default/nowhere"}`)
		s.wantAlive()
	})
	t.Run("cursor errors", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"wide","start":{"offset":18446744073709551615},"shard":3}`))
		f := s.frame()
		available, _ := f.Uint("available")
		if want := fmt.Sprintf(`{"type":"subscribe_cursor_error","reason":"in_future","requested":18446744073709551615,"available":%d}`, available); string(f.Payload) != want {
			t.Fatalf("got  %s\nwant %s", f.Describe(), want)
		}
	})
	t.Run("cache with request ids", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(
			raw.JSON(`{"type":"cache_put","tenant_id":"t1","namespace":"default","cache":"primary","key":"<&>\u2028","value":"","request_id":1,"ttl_ms":null}`),
			raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"<&>\u2028","request_id":2}`),
			raw.JSON(`{"type":"cache_delete","tenant_id":"t1","namespace":"default","cache":"primary","key":"<&>\u2028","request_id":3}`),
			raw.JSON(`{"type":"cache_delete","tenant_id":"t1","namespace":"default","cache":"primary","key":"<&>\u2028","request_id":4}`),
		)
		s.wantText(`{"type":"cache_ok","request_id":1}`)
		const head = `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"primary","key":"<&>\u2028",`
		s.wantJSON(head + `"value":"","request_id":2}`)
		s.wantJSON(head + `"value":"","request_id":3}`)
		s.wantJSON(head + `"value":null,"request_id":4}`)
	})
	t.Run("cache value has no version", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		value := encode([]byte("v"))
		s.frames(raw.JSON(map[string]any{"type": "cache_put", "tenant_id": "t1", "namespace": "default", "cache": "primary", "key": "k", "value": value, "request_id": 1}))
		s.wantText(`{"type":"cache_ok","request_id":1}`)
		s.frames(raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","request_id":2}`))
		s.wantText(`{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","value":"` + value + `","request_id":2}`)
	})
	t.Run("shard counts", func(t *testing.T) {
		c := c.in(t)
		s := c.legacy()
		s.frames(raw.JSON(`{"type":"stream_shards","tenant_id":"t1","namespace":"default","stream":"wide","request_id":1}`))
		s.wantText(`{"type":"stream_shards_view","shards":4,"request_id":1}`)
		s = c.legacy()
		s.frames(raw.JSON(`{"type":"stream_shards","tenant_id":"t1","namespace":"default","stream":"nowhere","request_id":2}`))
		s.wantText(`{"type":"stream_shards_view","shards":0,"request_id":2}`)
		s = c.legacy()
		s.frames(raw.JSON(`{"type":"cache_shards","tenant_id":"t1","namespace":"default","cache":"primary","request_id":3}`))
		s.wantText(`{"type":"cache_shards_view","shards":1,"request_id":3}`)
	})
	t.Run("unknown request types close the stream", func(t *testing.T) {
		c := c.in(t)
		for _, m := range []string{`{"type":"nonesuch","request_id":1}`, `{"type":"publish_width","tenant_id":"t1","namespace":"default","stream":"s","shards":1}`} {
			s := c.legacy()
			s.frames(raw.JSON(m))
			s.wantEnd()
		}
	})
	t.Run("the connection outlives it all", func(t *testing.T) { c.in(t).legacy().wantAlive() })
}

// TestALPN is the rule of wire 2.1.
func TestALPN(t *testing.T) {
	n := felixtest.Start(t)
	for _, tc := range []struct {
		offer []string
		want  string
	}{{nil, ""}, {[]string{"felix/1"}, "felix/1"}, {[]string{"h3", "felix/1"}, "felix/1"}} {
		c, err := tryDial(n, tc.offer)
		if err != nil {
			t.Fatalf("offer %v: %v", tc.offer, err)
		}
		if got := c.ConnectionState().TLS.NegotiatedProtocol; got != tc.want {
			t.Errorf("offer %v: negotiated %q, want %q", tc.offer, got, tc.want)
		}
		c.CloseWithError(0, "")
	}
	var alert *quic.TransportError
	if c, err := tryDial(n, []string{"h3"}); err == nil {
		c.CloseWithError(0, "")
		t.Error("a client that offers only h3 was let in")
	} else if !errors.As(err, &alert) || !alert.ErrorCode.IsCryptoError() {
		t.Errorf("a client that offers only h3: %v", err)
	}
}
