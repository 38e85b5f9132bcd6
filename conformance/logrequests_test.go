package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// members cuts a JSON message of this package's tests into its members, as
// they are written; none of their values has a comma in it.
func members(message string) []string {
	return strings.Split(strings.Trim(message, "{}"), ",")
}

// TestMalformedLogRequests: the rows of wire 19 that touch the requests of a
// log.
func TestMalformedLogRequests(t *testing.T) {
	h := newHostile(t, felixtest.Durable())
	// Optional ones are left out of these, so that every member is needed.
	requests := slices.Concat(logRequests(inStream, inCache), groupRequests)
	for _, m := range requests {
		kind := raw.JSON(m).Type()
		h.run(t, kind+" with a member missing or of another type ends the stream", func(c *rawConn) {
			for i, member := range members(m) {
				name, value, _ := strings.Cut(member, ":")
				if name == `"type"` {
					continue
				}
				without := slices.Delete(members(m), i, i+1)
				var bad []string
				// Without key or prefix a watch is refused, not malformed.
				if kind != "cache_watch" || name != `"key"` {
					bad = append(bad, "{"+strings.Join(without, ",")+"}")
				}
				wrong := []string{`{}`, `true`}
				if strings.HasPrefix(value, `"`) {
					wrong = append(wrong, `7`, `["a"]`)
				} else {
					wrong = append(wrong, `"7"`, `1.5`, `18446744073709551616`)
				}
				for _, w := range wrong {
					with := slices.Clone(members(m))
					with[i] = name + ":" + w
					bad = append(bad, "{"+strings.Join(with, ",")+"}")
				}
				for _, text := range bad {
					s := c.session()
					s.frames(raw.JSON(text))
					f, err := s.next()
					if err == nil {
						c.t.Errorf("%s\nanswered %s", text, f.Describe())
						continue
					}
					s.wantStopped()
				}
			}
		})
		h.run(t, kind+" before auth", func(c *rawConn) {
			s := c.open()
			s.frames(raw.JSON(m))
			s.wantText(`{"type":"error","message":"auth required"}`)
			s.wantEnd()
		})
		h.run(t, kind+" of a foreign tenant", func(c *rawConn) {
			s := c.session()
			s.frames(raw.JSON(strings.Replace(m, `"t1"`, `"t2"`, 1)))
			s.wantError("forbidden", "tenant mismatch")
			s.wantEnd()
		})
		h.run(t, kind+" without the right to it", func(c *rawConn) {
			s := c.session("stream.publish:stream:t1/other")
			s.frames(raw.JSON(m))
			s.wantError("forbidden", "forbidden")
			s.wantEnd()
		})
		h.run(t, kind+" of an old client", func(c *rawConn) {
			s := c.legacy()
			s.frames(raw.JSON(strings.Replace(strings.Replace(m, `"s"`, `"nowhere"`, 1), `"primary"`, `"nowhere"`, 1)))
			f := s.frame()
			if want := fmt.Sprintf(`{"type":"error","message":%q}`, f.String("message")); string(f.Payload) != want {
				c.t.Errorf("got  %s\nwant %s", f.Describe(), want)
			}
		})
	}
	group := inGroup("s", "g")
	h.run(t, "values that do not parse end the stream", func(c *rawConn) {
		for _, m := range []string{
			`{"type":"counter_add",` + inCache + `"key":"k","delta":9223372036854775808,"request_id":1}`,
			`{"type":"counter_add",` + inCache + `"key":"k","delta":-9223372036854775809,"request_id":1}`,
			`{"type":"publish_if",` + inStream + `"payloads":["a"],"expected_offset":0,"request_id":1}`,
			`{"type":"publish_if",` + inStream + `"payloads":["YQ==",7],"expected_offset":0,"request_id":1}`,
			`{"type":"publish_if",` + inStream + `"payloads":["YQ=="],"expected_offset":-1,"request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"a","event":"","request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"a","request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"","changes":{},"request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"","changes":[{"op":"put","key":"k"}],"request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"","changes":[{"op":"delete"}],"request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"","changes":[{"op":"move","key":"k"}],"request_id":1}`,
			`{"type":"commit",` + inStream + `"entity_key":"","event":"","changes":[{"key":"k"}],"request_id":1}`,
			`{"type":"cache_put_if",` + inCache + `"key":"k","value":"","condition":"present","request_id":1}`,
			`{"type":"cache_put_if",` + inCache + `"key":"k","value":"","condition":{},"request_id":1}`,
			`{"type":"cache_watch",` + inCache + `"key":"k","retained":"yes"}`,
			`{"type":"stream_read",` + inStream + `"shard":4294967296,"from":0,"request_id":1}`,
			`{"type":"group_poll",` + group + `"max_records":4294967296,"request_id":1}`,
			`{"type":"group_poll",` + group + `"max_records":1,"wait_ms":-1,"request_id":1}`,
			`{"type":"group_poll",` + group + `"max_records":1,"consumer":7,"request_id":1}`,
			`{"type":"group_poll",` + group + `"max_records":1,"reclaim":1,"request_id":1}`,
			`{"type":"group_poll",` + group + `"max_records":1,"visibility_ms":"1","request_id":1}`,
			`{"type":"group_nack",` + group + `"offset":0,"delay_ms":1.5,"request_id":1}`,
			`{"type":"group_nack",` + group + `"offset":0,"attempts":4294967296,"request_id":1}`,
			`{"type":"group_seek",` + group + `"start":"middle","request_id":1}`,
			`{"type":"group_seek",` + group + `"start":{"offset":"1"},"request_id":1}`,
			`{"type":"group_seek",` + group + `"start":"earliest","if_new":"yes","request_id":1}`,
			`{"type":"group_describe",` + group + `"held":1,"request_id":1}`,
		} {
			s := c.session()
			s.frames(raw.JSON(m))
			if f, err := s.next(); err == nil {
				c.t.Errorf("%s\nanswered %s", m, f.Describe())
				continue
			}
			s.wantStopped()
		}
	})
	h.run(t, "nothing of all that was written", func(c *rawConn) {
		c.session().exchange(
			exchange{`{"type":"stream_read",` + inStream + `"shard":0,"from":0,"request_id":1}`, `{"type":"stream_records","records":[],"next_offset":0,"request_id":1}`},
			exchange{`{"type":"counter_get",` + inCache + `"key":"k","request_id":2}`, `{"type":"counter_value","request_id":2}`},
			exchange{`{"type":"group_delete",` + group + `"request_id":3}`, `{"type":"group_deleted","existed":false,"request_id":3}`},
		)
	})
}

// groupRequests is one of each request of a group.
var groupRequests = func() []string {
	group := inGroup("s", "g")
	return []string{
		`{"type":"group_poll",` + group + `"max_records":1,"request_id":7}`,
		`{"type":"group_ack",` + group + `"offset":0,"request_id":7}`,
		`{"type":"group_nack",` + group + `"offset":0,"request_id":7}`,
		`{"type":"group_extend",` + group + `"offset":0,"attempts":1,"extend_ms":1,"request_id":7}`,
		`{"type":"group_dead_letter",` + group + `"offset":0,"request_id":7}`,
		`{"type":"group_dead_letters",` + group + `"request_id":7}`,
		`{"type":"group_discard",` + group + `"offset":0,"request_id":7}`,
		`{"type":"group_redrive",` + group + `"offset":0,"request_id":7}`,
		`{"type":"group_seek",` + group + `"start":"earliest","request_id":7}`,
		`{"type":"group_describe",` + group + `"request_id":7}`,
		`{"type":"group_delete",` + group + `"request_id":7}`,
	}
}()

// inspectRequests are the requests that are served by no node yet.
var inspectRequests = []string{
	`{"type":"shard_inspect","tenant_id":"t1","namespace":"default","name":"s","kind":"stream","shard":0,"request_id":7}`,
	`{"type":"subscriptions_list","request_id":7}`,
}

// TestUnservedRequests: what a node does not advertise it answers with
// `unsupported`, and goes on; an old client's stream ends (wire 19).
func TestUnservedRequests(t *testing.T) {
	for _, tc := range []struct {
		name     string
		options  []felixtest.Option
		requests []string
	}{
		{"in memory", nil, slices.Concat(logRequests(inStream, inCache), groupRequests, inspectRequests)},
		{"with storage", []felixtest.Option{felixtest.Durable()}, inspectRequests},
	} {
		h := newHostile(t, tc.options...)
		h.run(t, tc.name, func(c *rawConn) {
			s := c.session()
			for _, m := range tc.requests {
				id := `,"request_id":7`
				if !strings.Contains(m, id) {
					id = ""
				}
				s.exchange(exchange{m, fmt.Sprintf(`{"type":"unsupported","request_type":%q%s}`, raw.JSON(m).Type(), id)})
				s.wantAlive()
				old := c.legacy()
				old.frames(raw.JSON(m))
				old.wantEnd()
			}
		})
	}
}

// TestStreamsOfMemory: on a node with storage a stream may still be in
// memory. What needs a log is refused there, and no offset is made up.
func TestStreamsOfMemory(t *testing.T) {
	c := newGolden(t)
	c.node.CreateStreamWith("ring", broker.StreamOptions{Shards: 1})
	c.node.CreateCacheWith("plain", broker.CacheOptions{Shards: 1})
	const ring, plain = `"tenant_id":"t1","namespace":"default","stream":"ring",`, `"tenant_id":"t1","namespace":"default","cache":"plain",`
	s := c.session()
	s.exchange(exchange{`{"type":"publish",` + ring + `"payload":"YQ==","request_id":1}`, `{"type":"publish_ok","request_id":1}`})
	for _, m := range logRequests(ring, plain) {
		if kind := raw.JSON(m).Type(); kind == "cache_watch" {
			c.session().exchange(exchange{m, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`})
			continue
		}
		s.exchange(exchange{m, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`})
	}
	s.wantAlive()
}
