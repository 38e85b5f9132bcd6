package conformance

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// hostile is a node with one stream and one cache, one connection that
// misbehaves, and one that does not.
type hostile struct {
	*rawConn
	bystander *rawStream
}

func newHostile(t *testing.T, options ...felixtest.Option) hostile {
	t.Helper()
	n := felixtest.Start(t, append([]felixtest.Option{felixtest.WithSetting("auto-create", "false")}, options...)...)
	n.CreateStream("s", 1)
	n.CreateCache("primary")
	return hostile{dialRaw(t, n), dialRaw(t, n).legacy()}
}

// run runs one case and then checks that nobody else noticed: neither other
// streams of the same connection nor other connections.
func (h hostile) run(t *testing.T, name string, test func(c *rawConn)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		c := h.in(t)
		test(c)
		c.legacy().wantAlive()
		by := *h.bystander
		by.t = t
		by.wantAlive()
	})
}

func publish(flags uint16, stream string, records ...string) raw.Publish {
	p := raw.Publish{Flags: flags | raw.FlagPublishBatch, Tenant: "t1", Namespace: "default", Stream: stream}
	for _, r := range records {
		p.Records = append(p.Records, []byte(r))
	}
	return p
}

func acked(id uint64, stream string, records ...string) raw.Publish {
	p := publish(raw.FlagPublishAcked, stream, records...)
	p.RequestID, p.AckMode = id, 2
	return p
}

// wantFailedAck reads a failed binary ack with code and retry class.
func (s *rawStream) wantFailedAck(id uint64, code uint16, message string) {
	s.t.Helper()
	f := s.frame()
	a, err := raw.ParseAck(f)
	if err != nil || f.Flags&raw.FlagPublishAck == 0 || a.Status != 1 || a.RequestID != id || a.Code != code || a.Message != message {
		s.t.Fatalf("got %s (%+v, %v), want a failed ack of %d with code %d: %s", f.Describe(), a, err, id, code, message)
	}
}

// Codes of wire 16.2.
const (
	codeForbidden      = 2
	codeNotFound       = 3
	codeInvalidRequest = 4
)

// TestMalformed walks the broker's column of wire 19.
func TestMalformed(t *testing.T) {
	onBoth(t, testMalformed)
}

func testMalformed(t *testing.T, options ...felixtest.Option) {
	h := newHostile(t, options...)
	token := h.node.Token()
	good := publish(0, "s", "x").Frame()

	ends := map[string][]byte{
		"bad magic":           append([]byte("FLX2"), good.Append(nil)[4:]...),
		"bad version":         append([]byte("FLX1\x00\x02"), good.Append(nil)[6:]...),
		"garbage":             []byte(strings.Repeat("GET / HTTP/1.1\r\n", 20)),
		"not JSON":            raw.JSON(`hello`).Append(nil),
		"empty payload":       raw.JSON(``).Append(nil),
		"JSON array":          raw.JSON(`[]`).Append(nil),
		"JSON null":           raw.JSON(`null`).Append(nil),
		"JSON string":         raw.JSON(`"publish"`).Append(nil),
		"no type":             raw.JSON(`{"tenant_id":"t1"}`).Append(nil),
		"type not a string":   raw.JSON(`{"type":7}`).Append(nil),
		"half a JSON object":  raw.JSON(`{"type":"topology"`).Append(nil),
		"two JSON objects":    raw.JSON(`{"type":"topology"}{"type":"topology"}`).Append(nil),
		"invalid UTF-8":       raw.JSON("{\"type\":\"stream_shards\",\"tenant_id\":\"t1\",\"namespace\":\"default\",\"stream\":\"\xff\xfe\",\"request_id\":1}").Append(nil),
		"field missing":       raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary"}`).Append(nil),
		"field of wrong type": raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":5}`).Append(nil),
		"negative id":         raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","request_id":-1}`).Append(nil),
		"id past 64 bits":     raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","request_id":18446744073709551616}`).Append(nil),
		"fractional id":       raw.JSON(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","request_id":1.5}`).Append(nil),
		"bad base64":          raw.JSON(`{"type":"cache_put","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","value":"a","request_id":1}`).Append(nil),
		"base64 line breaks":  raw.JSON(`{"type":"cache_put","tenant_id":"t1","namespace":"default","cache":"primary","key":"k","value":"YWJj\nYWJj","request_id":1}`).Append(nil),
		"bad start":           raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s","start":"middle"}`).Append(nil),
		"bad ack mode name":   raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"","request_id":1,"ack":"some"}`).Append(nil),
		"deep nesting":        raw.JSON(`{"type":"topology","x":` + strings.Repeat("[", 100_000)).Append(nil),
		"deep nesting closed": raw.JSON(`{"type":"topology","x":` + strings.Repeat(`{"a":`, 100_000) + "0" + strings.Repeat("}", 100_000) + "}").Append(nil),

		"unacked batch malformed":       raw.Frame{Flags: raw.FlagPublishBatch, Payload: good.Payload[:len(good.Payload)-1]}.Append(nil),
		"unacked batch empty":           raw.Frame{Flags: raw.FlagPublishBatch}.Append(nil),
		"unacked batch, foreign tenant": func() []byte { p := publish(0, "s", "x"); p.Tenant = "t2"; return p.Frame().Append(nil) }(),
		"unacked batch, tenant not UTF-8": func() []byte {
			p := publish(0, "s", "x")
			p.Tenant = "\xff\xfe"
			return p.Frame().Append(nil)
		}(),
		"acked prefix too short": raw.Frame{Flags: raw.FlagPublishBatch | raw.FlagPublishAcked, Payload: make([]byte, 8)}.Append(nil),
		"ack mode 0":             func() []byte { p := acked(1, "s", "x"); p.AckMode = 0; return p.Frame().Append(nil) }(),
		"ack mode 3":             func() []byte { p := acked(1, "s", "x"); p.AckMode = 3; return p.Frame().Append(nil) }(),
		"idempotent without acked": func() []byte {
			p := publish(raw.FlagPublishIdempotent, "s", "x")
			return p.Frame().Append(nil)
		}(),
		"modifier without base": raw.Frame{Flags: raw.FlagPublishAcked, Payload: acked(1, "s", "x").Frame().Payload}.Append(nil),
		"event batch":           raw.Events{Flags: raw.FlagEventBatch, Records: [][]byte{[]byte("x")}}.Frame().Append(nil),
		"binary ack":            raw.Ack{RequestID: 1}.Frame().Append(nil),
		"error from a client":   raw.JSON(`{"type":"error","message":"oops"}`).Append(nil),
	}
	for name, input := range ends {
		h.run(t, name+" ends the stream", func(c *rawConn) {
			s := c.session()
			s.bytes(input)
			s.wantEnd()
			s.wantStopped()
		})
	}

	h.run(t, "forbidden unacked batch ends the stream", func(c *rawConn) {
		s := c.session("stream.subscribe:stream:t1/*")
		s.frames(publish(0, "s", "x").Frame())
		s.wantEnd()
		s.wantStopped()
	})
	h.run(t, "length over the cap ends the stream on the header alone", func(c *rawConn) {
		for _, length := range []uint32{16<<20 + 1, 1<<31 - 1, 1<<32 - 1} {
			for _, flags := range []uint16{0, raw.FlagPublishBatch, raw.FlagPublishBatch | raw.FlagPublishAcked} {
				s := c.session()
				s.bytes(raw.AppendHeader(nil, flags, length))
				s.wantEnd()
				s.wantStopped()
			}
		}
	})
	h.run(t, "unknown flags are refused and skipped", func(c *rawConn) {
		s := c.session()
		for _, flags := range []uint16{raw.FlagUndefined, raw.FlagUndefined | raw.FlagPublishBatch} {
			s.frames(raw.Frame{Flags: flags, Payload: good.Payload})
			s.wantError("invalid_request", "unsupported frame flags")
			s.frames(raw.Frame{Flags: flags, Payload: make([]byte, 1<<20)})
			s.wantError("invalid_request", "unsupported frame flags")
			s.wantAlive()
		}
	})
	h.run(t, "unknown type is unsupported to who offered that", func(c *rawConn) {
		s := c.session()
		for request, answer := range map[string]string{
			`{"type":"nonesuch"}`: `{"type":"unsupported","request_type":"nonesuch"}`,
			`{"type":"nonesuch","request_id":18446744073709551615}`:             `{"type":"unsupported","request_type":"nonesuch","request_id":18446744073709551615}`,
			`{"type":"nonesuch","request_id":"7"}`:                              `{"type":"unsupported","request_type":"nonesuch"}`,
			`{"type":"nonesuch","request_id":1.5}`:                              `{"type":"unsupported","request_type":"nonesuch"}`,
			`{"type":"extension","name":"x.y","request_id":7,"body":{"f":0.1}}`: `{"type":"unsupported","request_type":"extension","extension":"x.y","request_id":7}`,
			`{"type":"extension","name":"x.y"}`:                                 `{"type":"unsupported","request_type":"extension","extension":"x.y"}`,
		} {
			s.frames(raw.JSON(request))
			s.wantJSON(answer)
			s.wantAlive()
		}
	})
	h.run(t, "unacked batch for an unknown stream is dropped", func(c *rawConn) {
		s := c.session()
		s.frames(publish(0, "nowhere", "x").Frame(), publish(0, "s").Frame())
		s.wantAlive()
	})
	h.run(t, "acked body malformed", func(c *rawConn) {
		s := c.session()
		f := acked(7, "s", "x").Frame()
		for cut := 9; cut < len(f.Payload); cut++ {
			s.frames(raw.Frame{Flags: f.Flags, Payload: f.Payload[:cut]})
			s.wantFailedAck(7, codeInvalidRequest, "malformed publish batch")
		}
		s.wantAlive()
	})
	h.run(t, "acked batch of a foreign tenant", func(c *rawConn) {
		s := c.session()
		p := acked(8, "s", "x")
		p.Tenant = "t2"
		s.frames(p.Frame())
		s.wantFailedAck(8, codeForbidden, "tenant mismatch")
		s.wantAlive()
	})
	h.run(t, "acked batch forbidden", func(c *rawConn) {
		s := c.session("cache.read:cache:t1/*")
		s.frames(acked(9, "s", "x").Frame())
		s.wantFailedAck(9, codeForbidden, "forbidden")
		s.wantAlive()
	})
	h.run(t, "acked batch for an unknown stream", func(c *rawConn) {
		s := c.session()
		s.frames(acked(1<<63, "nowhere", "x").Frame())
		a, err := raw.ParseAck(s.frame())
		if err != nil || a.Code != codeNotFound || a.RequestID != 1<<63 || !strings.Contains(a.Message, "stream not found") {
			c.t.Fatalf("%+v, %v", a, err)
		}
		s.wantAlive()
	})
	h.run(t, "acked empty batch is accepted", func(c *rawConn) {
		s := c.session()
		s.frames(acked(3, "s").Frame())
		if a, err := raw.ParseAck(s.frame()); err != nil || a.Status != 0 || a.RequestID != 3 {
			c.t.Fatalf("%+v, %v", a, err)
		}
		s.wantAlive()
	})
	h.run(t, "request before auth", func(c *rawConn) {
		for _, f := range []raw.Frame{cacheGet(1), raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`),
			raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"","request_id":1}`), good, acked(1, "s", "x").Frame()} {
			s := c.open()
			s.frames(f)
			s.wantText(`{"type":"error","message":"auth required"}`)
			s.wantEnd()
		}
		for _, m := range []string{`{"type":"topology"}`, `{"type":"stream_shards","tenant_id":"t1","namespace":"default","stream":"s","request_id":1}`} {
			s := c.open()
			s.frames(raw.JSON(m))
			s.wantText(`{"type":"error","message":"not authenticated"}`)
			s.wantEnd()
		}
	})
	h.run(t, "second auth", func(c *rawConn) {
		s := c.session()
		s.frames(fullAuthFrame(token))
		s.wantError("invalid_request", "auth already established")
		s.wantEnd()
	})
	h.run(t, "JSON requests of a foreign tenant", func(c *rawConn) {
		for _, m := range []string{
			`{"type":"subscribe","tenant_id":"t2","namespace":"default","stream":"s"}`,
			`{"type":"cache_get","tenant_id":"t2","namespace":"default","cache":"primary","key":"k","request_id":1}`,
			`{"type":"stream_shards","tenant_id":"t2","namespace":"default","stream":"s","request_id":1}`,
		} {
			s := c.session()
			s.frames(raw.JSON(m))
			s.wantError("forbidden", "tenant mismatch")
			s.wantEnd()
		}
	})
	h.run(t, "forbidden JSON publish", func(c *rawConn) {
		s := c.session("cache.read:cache:t1/*")
		s.frames(raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"","request_id":4}`))
		s.wantJSON(`{"type":"publish_error","request_id":4,"message":"forbidden","code":"forbidden","retry":"fatal"}`)
		s.wantEnd()
	})
	h.run(t, "forbidden subscribe", func(c *rawConn) {
		s := c.session("stream.publish:stream:t1/*")
		s.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
		s.wantError("forbidden", "forbidden")
		s.wantEnd()
	})
	h.run(t, "subscribe to a shard that does not exist", func(c *rawConn) {
		s := c.session()
		s.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s","shard":4294967295}`))
		if f := s.frame(); f.Type() != "error" || f.String("code") != "invalid_request" {
			c.t.Fatalf("got %s", f.Describe())
		}
	})
	for _, m := range brokerOnly {
		h.run(t, "broker's message "+raw.JSON(m).Type(), func(c *rawConn) {
			s := c.session()
			s.frames(raw.JSON(m))
			s.wantError("invalid_request", "unexpected message type")
			s.wantEnd()
		})
	}
}

// brokerOnly is one of each message that only a broker sends (wire 7), but for
// error, which ends the stream without a word.
var brokerOnly = []string{
	`{"type":"ok"}`,
	`{"type":"auth_ok","server_flags":7}`,
	`{"type":"unsupported","request_type":"x"}`,
	`{"type":"not_leader","node_id":"n","generation":1}`,
	`{"type":"topology_view","brokers":[]}`,
	`{"type":"stream_shards_view","shards":1,"request_id":1}`,
	`{"type":"cache_shards_view","shards":1,"request_id":1}`,
	`{"type":"shard_owners_view","owners":[],"request_id":1}`,
	`{"type":"publish_ok","request_id":1}`,
	`{"type":"publish_error","request_id":1,"message":"x"}`,
	`{"type":"producer_init_ok","request_id":1,"producer_id":1}`,
	`{"type":"publish_refused","request_id":1,"reason":"unknown_producer","message":"x"}`,
	`{"type":"subscribed","subscription_id":1}`,
	`{"type":"subscribe_cursor_error","reason":"too_old","requested":1,"available":2}`,
	`{"type":"event_stream_hello","subscription_id":1}`,
	`{"type":"event","tenant_id":"t1","namespace":"default","stream":"s","payload":""}`,
	`{"type":"event_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":[]}`,
	`{"type":"shard_moved","subscription_id":1,"generation":1}`,
	`{"type":"subscription_lagged","subscription_id":1,"resume_from":1}`,
	`{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"c","key":"k","value":null}`,
	`{"type":"cache_ok","request_id":1}`,
	`{"type":"cache_condition_result","applied":true,"request_id":1}`,
	`{"type":"cache_watch_started","subscription_id":1,"resume_offset":1}`,
	`{"type":"cache_event","key":"k","offset":1}`,
	`{"type":"cache_watch_lagged","resume_from":1}`,
	`{"type":"counter_value","request_id":1}`,
	`{"type":"commit_ok","request_id":1,"offset":1}`,
	`{"type":"state_value","value":null,"request_id":1}`,
	`{"type":"offset_value","request_id":1}`,
	`{"type":"stream_records","records":[],"next_offset":1,"request_id":1}`,
	`{"type":"group_records","records":[],"request_id":1}`,
	`{"type":"group_dead_letter_list","offsets":[],"request_id":1}`,
	`{"type":"group_extended","visible_ms":1,"request_id":1}`,
	`{"type":"group_position","offset":1,"moved":true,"request_id":1}`,
	`{"type":"group_info","tail":1,"in_flight":0,"owed":0,"dead_letters":0,"request_id":1}`,
	`{"type":"group_deleted","existed":true,"request_id":1}`,
}

// TestInnerLengths sets every inner length of every publish layout to values
// its frame does not hold (BR-01): a malformed batch, nothing else.
func TestInnerLengths(t *testing.T) {
	onBoth(t, testInnerLengths)
}

func testInnerLengths(t *testing.T, options ...felixtest.Option) {
	h := newHostile(t, options...)
	for _, flags := range []uint16{0, raw.FlagPublishKeyed, raw.FlagPublishAcked, raw.FlagPublishAcked | raw.FlagPublishKeyed} {
		p := acked(5, "s", "one", "two")
		p.Flags, p.Key = flags|raw.FlagPublishBatch, []byte("key")
		f := p.Frame()
		h.run(t, fmt.Sprintf("flags %#04x", f.Flags), func(c *rawConn) {
			s := c.session()
			for _, field := range lengthFields(p) {
				rest := uint64(len(f.Payload) - field.at - field.size)
				for _, v := range []uint64{rest + 1, 0x7FFF, 0xFFFF, 1<<31 - 1, 0xFFFF_FFFF} {
					if v <= rest || v >= 1<<(8*field.size) {
						continue
					}
					bad := append([]byte(nil), f.Payload...)
					if field.size == 2 {
						binary.BigEndian.PutUint16(bad[field.at:], uint16(v))
					} else {
						binary.BigEndian.PutUint32(bad[field.at:], uint32(v))
					}
					s.frames(raw.Frame{Flags: f.Flags, Payload: bad})
					if flags&raw.FlagPublishAcked != 0 {
						s.wantFailedAck(5, codeInvalidRequest, "malformed publish batch")
						continue
					}
					s.wantEnd()
					s = c.session()
				}
			}
			s.wantAlive()
		})
	}
}

// A lengthField is where a payload holds a length or a count.
type lengthField struct{ at, size int }

// lengthFields are the lengths and the count of a publish batch.
func lengthFields(p raw.Publish) []lengthField {
	var fields []lengthField
	at := 0
	if p.Flags&raw.FlagPublishAcked != 0 {
		at += 9
	}
	names := []string{p.Tenant, p.Namespace, p.Stream}
	if p.Flags&raw.FlagPublishKeyed != 0 {
		names = append([]string{string(p.Key)}, names...)
	}
	for _, name := range names {
		fields = append(fields, lengthField{at, 2})
		at += 2 + len(name)
	}
	fields = append(fields, lengthField{at, 4})
	at += 4
	for _, r := range p.Records {
		fields = append(fields, lengthField{at, 4})
		at += 4 + len(r)
	}
	return fields
}
