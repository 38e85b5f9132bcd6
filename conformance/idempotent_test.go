package conformance

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// A numbering is one idempotent producer on one stream (wire 9.6).
type numbering struct {
	*rawStream
	producer uint64
	stream   string
	requests uint64
}

// producer asks for a producer id on a session of its own.
func (c *rawConn) producer(s *rawStream, stream string) *numbering {
	c.t.Helper()
	s.frames(raw.JSON(`{"type":"producer_init","request_id":18446744073709551615}`))
	f := s.frame()
	id, _ := f.Uint("producer_id")
	if want := fmt.Sprintf(`{"type":"producer_init_ok","request_id":18446744073709551615,"producer_id":%d}`, id); string(f.Payload) != want {
		c.t.Fatalf("got  %s\nwant %s", f.Describe(), want)
	}
	return &numbering{rawStream: s, producer: id, stream: stream}
}

// frame is the binary form of a batch.
func (n *numbering) frame(sequence uint64, records ...string) raw.Frame {
	n.requests++
	p := publish(raw.FlagPublishAcked|raw.FlagPublishIdempotent, n.stream, records...)
	p.RequestID, p.AckMode, p.ProducerID, p.Sequence = n.requests, 2, n.producer, sequence
	return p.Frame()
}

// send sends a batch and reads its answer, of which want leaves out the
// request id: `"type":"publish_ok","request_id":ID` and then the rest.
func (n *numbering) send(want string, sequence uint64, records ...string) {
	n.t.Helper()
	n.frames(n.frame(sequence, records...))
	n.answered(n.requests, want)
}

func (n *numbering) answered(id uint64, want string) {
	n.t.Helper()
	f := n.rawStream.frame()
	full := fmt.Sprintf(`{"type":"publish_ok","request_id":%d%s}`, id, want)
	if want != "" && want[0] == '"' {
		full = fmt.Sprintf(`{"type":"publish_refused","request_id":%d,"reason":%s,"message":%q}`, id, want, f.String("message"))
	}
	if f.Flags != 0 || string(f.Payload) != full {
		n.t.Fatalf("got  %s\nwant %s", f.Describe(), full)
	}
}

func at(offset int) string { return fmt.Sprintf(`,"offset":%d`, offset) }

// TestIdempotentProducer walks the table of wire 9.6, in the binary form.
func TestIdempotentProducer(t *testing.T) {
	t.Run("in order", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "s")
		n.send(at(0), 0, "a")
		n.send(at(1), 1, "b", "c")
		// An empty batch has no offset to be known by again: it is refused and
		// its number stays free.
		n.frames(n.frame(2))
		if f := n.rawStream.frame(); f.Type() != "publish_error" || f.String("code") != "invalid_request" {
			t.Fatalf("an empty batch: %s", f.Describe())
		}
		n.send(at(3), 2, "d")
	})
	t.Run("ack.duplicate_reports_the_original_offset", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "s")
		n.send(at(0), 0, "x", "y")
		n.send(at(2), 1, "z")
		for range 2 {
			n.send(at(0), 0, "x", "y")
			n.send(at(2), 1, "z")
		}
		// Also on another connection, and then the numbering goes on.
		other := &numbering{rawStream: dialRaw(t, c.node).session(), producer: n.producer, stream: "s"}
		other.send(at(0), 0, "x", "y")
		other.send(at(3), 2, "next")
	})
	t.Run("refusals", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "s")
		n.send(`"unknown_producer"`, 1, "a")
		n.send(at(0), 0, "a")
		n.refused(`{"sequence_gap":{"expected":1}}`, 2, "c")
		n.send(`"sequence_reused"`, 0, "other")
		n.refused(`{"sequence_gap":{"expected":1}}`, 1<<64-1, "c")
		for i := 1; i <= 70; i++ {
			n.send(at(i), uint64(i), "a")
		}
		n.send(`"sequence_expired"`, 0, "a")
		n.send(at(70), 70, "a")
		n.wantAlive()
	})
	t.Run("reused, to a client that does not know the word", func(t *testing.T) {
		c := newGolden(t)
		s := c.open()
		s.frames(raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": c.node.Token(),
			"client_flags": clientFlags, "client_features": clientFeatures &^ featureSequenceReused}))
		s.frame()
		n := c.producer(s, "s")
		n.send(at(0), 0, "a")
		n.send(at(0), 0, "other")
		n.send(at(1), 1, "b")
	})
	t.Run("pipelined", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "s")
		for i := range uint64(64) {
			n.frames(n.frame(i, "p"))
		}
		for i := range 64 {
			n.answered(uint64(i+1), at(i))
		}
	})
	t.Run("every shard has a numbering of its own", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "wide")
		for round := range 3 {
			for _, key := range []string{"customer-0", "customer-4", "customer-1"} { // shards 0, 2 and 3 of 8, and of 4 (wire 14)
				p, err := raw.ParsePublish(n.frame(uint64(round), key))
				if err != nil {
					t.Fatal(err)
				}
				p.Flags, p.Key = p.Flags|raw.FlagPublishKeyed, []byte(key)
				n.frames(p.Frame())
				n.answered(n.requests, at(round))
			}
		}
	})
	t.Run("a restart forgets nothing", func(t *testing.T) {
		c := newGolden(t)
		n := c.producer(c.session(), "s")
		n.send(at(0), 0, "before")
		c.node.Restart()
		again := dialRaw(t, c.node)
		m := &numbering{rawStream: again.session(), producer: n.producer, stream: "s"}
		m.send(at(0), 0, "before")
		m.send(`"sequence_reused"`, 0, "other")
		m.send(at(1), 1, "after")
	})
}

// refused is send for a reason that is an object.
func (n *numbering) refused(reason string, sequence uint64, records ...string) {
	n.t.Helper()
	n.frames(n.frame(sequence, records...))
	f := n.rawStream.frame()
	want := fmt.Sprintf(`{"type":"publish_refused","request_id":%d,"reason":%s,"message":%q}`, n.requests, reason, f.String("message"))
	if string(f.Payload) != want {
		n.t.Fatalf("got  %s\nwant %s", f.Describe(), want)
	}
}

// TestIdempotentJSON: the JSON form is the same numbering.
func TestIdempotentJSON(t *testing.T) {
	c := newGolden(t)
	s := c.session()
	n := c.producer(s, "s")
	message := func(id int, sequence uint64, payloads, key string) string {
		return fmt.Sprintf(`{"type":"publish_idempotent",%s"payloads":%s,%s"request_id":%d,"producer_id":%d,"sequence":%d}`, inStream, payloads, key, id, n.producer, sequence)
	}
	s.exchange(
		exchange{message(1, 0, `["YQ==","Yg=="]`, ""), `{"type":"publish_ok","request_id":1,"offset":0}`},
		exchange{message(2, 0, `["YQ==","Yg=="]`, ""), `{"type":"publish_ok","request_id":2,"offset":0}`},
		exchange{message(3, 1, `["Yw=="]`, `"key":"aw==",`), `{"type":"publish_ok","request_id":3,"offset":2}`},
		exchange{message(4, 3, `["Yw=="]`, ""), `{"type":"publish_refused","request_id":4,"reason":{"sequence_gap":{"expected":2}},"message":"TEXT"}`},
		exchange{message(5, 1, `["ZA=="]`, ""), `{"type":"publish_refused","request_id":5,"reason":"sequence_reused","message":"TEXT"}`},
	)
	// The binary form knows what the JSON form sent.
	n.send(at(0), 0, "a", "b")
	n.send(at(3), 2, "d")
}

// TestIdempotentInMemory: a stream without a log keeps the numbering and has
// no offsets to name.
func TestIdempotentInMemory(t *testing.T) {
	n := felixtest.Start(t)
	n.CreateStream("s", 1)
	c := dialRaw(t, n)
	p := c.producer(c.session(), "s")
	p.send("", 0, "a")
	p.send("", 0, "a")
	p.send(`"sequence_reused"`, 0, "b")
	p.refused(`{"sequence_gap":{"expected":1}}`, 2, "c")
	p.send("", 1, "b")
}

// TestMalformedIdempotent: rows of wire 19 that touch the numbered frames.
func TestMalformedIdempotent(t *testing.T) {
	h := newHostile(t, felixtest.Durable())
	good := func(id uint64, sequence uint64) raw.Frame {
		p := publish(raw.FlagPublishAcked|raw.FlagPublishIdempotent, "s", "x")
		p.RequestID, p.AckMode, p.ProducerID, p.Sequence = id, 2, 1<<63+7, sequence
		return p.Frame()
	}
	h.run(t, "prefix too short ends the stream", func(c *rawConn) {
		for _, cut := range []int{0, 1, 8} {
			s := c.session()
			f := good(7, 0)
			s.frames(raw.Frame{Flags: f.Flags, Payload: f.Payload[:cut]})
			s.wantEnd()
			s.wantStopped()
		}
	})
	h.run(t, "bad ack mode ends the stream", func(c *rawConn) {
		for _, mode := range []byte{0, 3, 255} {
			s := c.session()
			f := good(7, 0)
			f.Payload[8] = mode
			s.frames(f)
			s.wantEnd()
			s.wantStopped()
		}
	})
	h.run(t, "body malformed fails the request", func(c *rawConn) {
		s := c.session()
		f := good(7, 0)
		for cut := 25; cut < len(f.Payload); cut++ {
			s.frames(raw.Frame{Flags: f.Flags, Payload: f.Payload[:cut]})
			s.wantJSON(`{"type":"publish_error","request_id":7,"message":"malformed publish batch","code":"invalid_request","retry":"fatal"}`)
		}
		s.wantAlive()
		// Nothing of it counted.
		s.frames(good(8, 0))
		s.wantText(`{"type":"publish_ok","request_id":8,"offset":0}`)
	})
	h.run(t, "foreign tenant, forbidden and unknown fail the request", func(c *rawConn) {
		for name, change := range map[string]func(p *raw.Publish){
			"tenant mismatch": func(p *raw.Publish) { p.Tenant = "t2" },
			"":                func(p *raw.Publish) { p.Stream = "nowhere" },
		} {
			s := c.session()
			p := publish(raw.FlagPublishAcked|raw.FlagPublishIdempotent, "s", "x")
			p.RequestID, p.AckMode, p.ProducerID = 9, 2, 5
			change(&p)
			s.frames(p.Frame())
			f := s.frame()
			if id, _ := f.Uint("request_id"); f.Type() != "publish_error" || id != 9 || name != "" && f.String("message") != name || f.String("code") == "" {
				c.t.Errorf("%s: %s", name, f.Describe())
			}
			s.wantAlive()
		}
		s := c.session("cache.read:cache:t1/*")
		s.frames(good(9, 0))
		s.wantJSON(`{"type":"publish_error","request_id":9,"message":"forbidden","code":"forbidden","retry":"fatal"}`)
		s.wantAlive()
	})
	h.run(t, "before auth", func(c *rawConn) {
		for _, f := range []raw.Frame{good(1, 0), raw.JSON(`{"type":"producer_init","request_id":1}`)} {
			s := c.open()
			s.frames(f)
			s.wantText(`{"type":"error","message":"auth required"}`)
			s.wantEnd()
		}
	})
	h.run(t, "an old client is told without codes", func(c *rawConn) {
		s := c.legacy()
		s.frames(good(3, 9))
		f := s.frame()
		if want := fmt.Sprintf(`{"type":"publish_refused","request_id":3,"reason":%s,"message":%q}`, `{"sequence_gap":{"expected":1}}`, f.String("message")); string(f.Payload) != want {
			c.t.Errorf("got  %s\nwant %s", f.Describe(), want)
		}
		s.frames(good(4, 1))
		s.wantText(`{"type":"publish_ok","request_id":4}`)
	})
}
