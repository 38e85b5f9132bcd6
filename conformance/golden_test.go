package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// stopped is a clock at which every record is appended at the same time.
type stopped struct{ at time.Time }

func (c stopped) Now() time.Time { return c.at }

func (stopped) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// goldenMicros is the append time of every record of the golden tests.
const goldenMicros = 1_700_000_000_000_000

// newGolden is a node with storage whose answers are the same in every run.
func newGolden(t *testing.T, options ...felixtest.Option) *rawConn {
	t.Helper()
	n := felixtest.Start(t, append([]felixtest.Option{
		felixtest.Durable(), felixtest.WithClock(stopped{time.UnixMicro(goldenMicros)}), felixtest.WithSetting("auto-create", "false"),
	}, options...)...)
	n.CreateStream("s", 1)
	n.CreateStream("wide", 4)
	n.CreateCache("primary")
	return dialRaw(t, n)
}

const (
	inStream = `"tenant_id":"t1","namespace":"default","stream":"s",`
	inCache  = `"tenant_id":"t1","namespace":"default","cache":"primary",`
)

// An exchange is a request and its answer, byte for byte; TEXT stands for the
// prose of a message.
type exchange struct{ request, answer string }

func (s *rawStream) exchange(exchanges ...exchange) {
	s.t.Helper()
	for _, e := range exchanges {
		s.frames(raw.JSON(e.request))
		f := s.frame()
		if want := strings.Replace(e.answer, `"TEXT"`, fmt.Sprintf("%q", f.String("message")), 1); f.Flags != 0 || string(f.Payload) != want {
			s.t.Fatalf("%s\ngot  %s\nwant %s", e.request, f.Describe(), want)
		}
		if strings.Contains(e.answer, `"TEXT"`) && f.String("message") == "" {
			s.t.Fatalf("%s\nanswered without a word: %s", e.request, f.Describe())
		}
	}
}

// TestGoldenAnswers: the messages that need a log, byte for byte (wire 7).
func TestGoldenAnswers(t *testing.T) {
	t.Run("counters", func(t *testing.T) {
		newGolden(t).session().exchange(
			exchange{`{"type":"counter_get",` + inCache + `"key":"k","request_id":1}`, `{"type":"counter_value","request_id":1}`},
			exchange{`{"type":"counter_add",` + inCache + `"key":"k","delta":7,"request_id":2}`, `{"type":"counter_value","value":7,"request_id":2}`},
			exchange{`{"type":"counter_add",` + inCache + `"key":"k","delta":-9,"request_id":18446744073709551615}`, `{"type":"counter_value","value":-2,"request_id":18446744073709551615}`},
			exchange{`{"type":"counter_get",` + inCache + `"key":"k","request_id":4}`, `{"type":"counter_value","value":-2,"request_id":4}`},
			exchange{`{"type":"counter_add",` + inCache + `"key":"min","delta":-9223372036854775808,"request_id":5}`, `{"type":"counter_value","value":-9223372036854775808,"request_id":5}`},
			exchange{`{"type":"counter_add",` + inCache + `"key":"min","delta":-1,"request_id":6}`, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`},
		)
	})
	t.Run("caches", func(t *testing.T) {
		const value = `{"type":"cache_value",` + inCache
		newGolden(t).session().exchange(
			exchange{`{"type":"cache_put",` + inCache + `"key":"k","value":"YQ==","request_id":1,"ttl_ms":null}`, `{"type":"cache_ok","request_id":1}`},
			exchange{`{"type":"cache_get",` + inCache + `"key":"k","request_id":2}`, value + `"key":"k","value":"YQ==","request_id":2,"version":0}`},
			exchange{`{"type":"cache_get",` + inCache + `"key":"none","request_id":3}`, value + `"key":"none","value":null,"request_id":3}`},
			// A version is the offset of the put: deletes take offsets too.
			exchange{`{"type":"cache_put",` + inCache + `"key":"x","value":"","request_id":4}`, `{"type":"cache_ok","request_id":4}`},
			exchange{`{"type":"cache_delete",` + inCache + `"key":"x","request_id":5}`, value + `"key":"x","value":"","request_id":5}`},
			exchange{`{"type":"cache_delete",` + inCache + `"key":"x","request_id":6}`, value + `"key":"x","value":null,"request_id":6}`},
			exchange{`{"type":"cache_put_if",` + inCache + `"key":"k","value":"Yg==","condition":"absent","request_id":7}`, `{"type":"cache_condition_result","applied":false,"version":0,"request_id":7}`},
			exchange{`{"type":"cache_put_if",` + inCache + `"key":"k","value":"Yg==","condition":{"version":0},"request_id":8}`, `{"type":"cache_condition_result","applied":true,"version":3,"request_id":8}`},
			exchange{`{"type":"cache_delete_if",` + inCache + `"key":"k","version":0,"request_id":9}`, `{"type":"cache_condition_result","applied":false,"version":3,"request_id":9}`},
			exchange{`{"type":"cache_delete_if",` + inCache + `"key":"k","version":3,"request_id":10}`, `{"type":"cache_condition_result","applied":true,"request_id":10}`},
			exchange{`{"type":"cache_delete_if",` + inCache + `"key":"k","version":3,"request_id":11}`, `{"type":"cache_condition_result","applied":false,"request_id":11}`},
			exchange{`{"type":"cache_put_if",` + inCache + `"key":"k","value":"","ttl_ms":60000,"condition":"absent","request_id":12}`, `{"type":"cache_condition_result","applied":true,"version":5,"request_id":12}`},
		)
	})
	t.Run("publishes", func(t *testing.T) {
		newGolden(t).session().exchange(
			exchange{`{"type":"publish",` + inStream + `"payload":"YQ==","request_id":1}`, `{"type":"publish_ok","request_id":1,"offset":0}`},
			exchange{`{"type":"publish_batch",` + inStream + `"payloads":["Yg==","Yw=="],"request_id":2}`, `{"type":"publish_ok","request_id":2,"offset":1}`},
			exchange{`{"type":"publish_if",` + inStream + `"payloads":["ZA=="],"expected_offset":2,"request_id":3}`, `{"type":"publish_refused","request_id":3,"reason":{"offset_mismatch":{"tail":3}},"message":"TEXT"}`},
			exchange{`{"type":"publish_if",` + inStream + `"payloads":["ZA==","ZQ=="],"expected_offset":3,"request_id":4}`, `{"type":"publish_ok","request_id":4,"offset":3}`},
			exchange{`{"type":"publish_if",` + inStream + `"payloads":[],"expected_offset":5,"request_id":5}`, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`},
			exchange{`{"type":"publish_if",` + inStream + `"payloads":["ZA=="],"expected_offset":18446744073709551615,"request_id":6}`, `{"type":"publish_refused","request_id":6,"reason":{"offset_mismatch":{"tail":5}},"message":"TEXT"}`},
		)
	})
	t.Run("commits", func(t *testing.T) {
		const get = `{"type":"state_get",` + inStream + `"entity_key":"azc=",`
		newGolden(t).session().exchange(
			exchange{get + `"key":"a","request_id":1}`, `{"type":"state_value","value":null,"request_id":1}`},
			exchange{`{"type":"commit",` + inStream + `"entity_key":"azc=","event":"ZQ==","changes":[{"op":"put","key":"a","value":"eA=="},{"op":"put","key":"b","value":""}],"request_id":2}`, `{"type":"commit_ok","request_id":2,"offset":0}`},
			exchange{`{"type":"commit",` + inStream + `"entity_key":"azc=","event":"","changes":[{"op":"delete","key":"b"}],"request_id":3,"expected_offset":1}`, `{"type":"commit_ok","request_id":3,"offset":1}`},
			exchange{`{"type":"commit",` + inStream + `"entity_key":"","event":"ZQ==","request_id":4}`, `{"type":"commit_ok","request_id":4,"offset":2}`},
			exchange{`{"type":"commit",` + inStream + `"entity_key":"azc=","event":"ZQ==","changes":[{"op":"put","key":"a","value":"eQ=="}],"request_id":5,"expected_offset":2}`, `{"type":"publish_refused","request_id":5,"reason":{"offset_mismatch":{"tail":3}},"message":"TEXT"}`},
			exchange{get + `"key":"a","request_id":6}`, `{"type":"state_value","value":"eA==","version":0,"as_of":1,"request_id":6}`},
			exchange{get + `"key":"b","request_id":7}`, `{"type":"state_value","value":null,"as_of":1,"request_id":7}`},
		)
	})
	t.Run("reads", func(t *testing.T) {
		const read = `{"type":"stream_read",` + inStream + `"shard":0,`
		const time = `{"type":"offset_for_time",` + inStream + `"shard":0,`
		record := func(offset int, payload string) string {
			return fmt.Sprintf(`{"offset":%d,"payload":%q,"timestamp_micros":%d}`, offset, payload, int64(goldenMicros))
		}
		newGolden(t).session().exchange(
			exchange{read + `"from":0,"request_id":1}`, `{"type":"stream_records","records":[],"next_offset":0,"request_id":1}`},
			exchange{time + `"at_micros":0,"request_id":2}`, `{"type":"offset_value","request_id":2}`},
			exchange{`{"type":"publish_batch",` + inStream + `"payloads":["YQ==","","Yw=="],"request_id":3}`, `{"type":"publish_ok","request_id":3,"offset":0}`},
			exchange{read + `"from":0,"request_id":4}`, `{"type":"stream_records","records":[` + record(0, "YQ==") + "," + record(1, "") + "," + record(2, "Yw==") + `],"next_offset":3,"request_id":4}`},
			exchange{read + `"from":1,"max_records":1,"request_id":5}`, `{"type":"stream_records","records":[` + record(1, "") + `],"next_offset":2,"request_id":5}`},
			exchange{read + `"from":0,"end":2,"max_records":0,"max_bytes":0,"request_id":6}`, `{"type":"stream_records","records":[` + record(0, "YQ==") + "," + record(1, "") + `],"next_offset":2,"request_id":6}`},
			// One record is returned however small the bound.
			exchange{read + `"from":2,"max_bytes":1,"request_id":7}`, `{"type":"stream_records","records":[` + record(2, "Yw==") + `],"next_offset":3,"request_id":7}`},
			exchange{read + `"from":3,"request_id":8}`, `{"type":"stream_records","records":[],"next_offset":3,"request_id":8}`},
			exchange{read + `"from":4,"request_id":9}`, `{"type":"subscribe_cursor_error","reason":"in_future","requested":4,"available":3}`},
			exchange{time + `"at_micros":0,"request_id":10}`, `{"type":"offset_value","offset":0,"request_id":10}`},
			exchange{time + fmt.Sprintf(`"at_micros":%d,"request_id":11}`, int64(goldenMicros)), `{"type":"offset_value","offset":0,"request_id":11}`},
			exchange{time + fmt.Sprintf(`"at_micros":%d,"request_id":12}`, int64(goldenMicros)+1), `{"type":"offset_value","request_id":12}`},
			exchange{read + `"from":0,"request_id":18446744073709551615,"end":0}`, `{"type":"stream_records","records":[],"next_offset":0,"request_id":18446744073709551615}`},
		)
	})
	t.Run("names and shards that are not there", func(t *testing.T) {
		const missing = `{"type":"error","message":"TEXT","code":"not_found","retry":"retry_after"}`
		const invalid = `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`
		s := newGolden(t).session()
		for _, m := range logRequests(`"tenant_id":"t1","namespace":"default","stream":"nowhere",`, `"tenant_id":"t1","namespace":"default","cache":"nowhere",`) {
			if !strings.HasPrefix(m, `{"type":"cache_watch"`) { // which ends its stream
				s.exchange(exchange{m, missing})
			}
		}
		for _, m := range []string{
			`{"type":"stream_read",` + inStream + `"shard":1,"from":0,"request_id":1}`,
			`{"type":"offset_for_time",` + inStream + `"shard":4294967295,"at_micros":0,"request_id":1}`,
			`{"type":"counter_add",` + inCache + `"key":"","delta":1,"request_id":1}`,
		} {
			s.exchange(exchange{m, invalid})
		}
		s.wantAlive()
	})
}

// logRequests is one of each request that needs a log.
func logRequests(inStream, inCache string) []string {
	return []string{
		`{"type":"counter_add",` + inCache + `"key":"k","delta":1,"request_id":7}`,
		`{"type":"counter_get",` + inCache + `"key":"k","request_id":7}`,
		`{"type":"publish_if",` + inStream + `"payloads":["YQ=="],"expected_offset":0,"request_id":7}`,
		`{"type":"commit",` + inStream + `"entity_key":"azc=","event":"ZQ==","request_id":7}`,
		`{"type":"state_get",` + inStream + `"entity_key":"azc=","key":"a","request_id":7}`,
		`{"type":"stream_read",` + inStream + `"shard":0,"from":0,"request_id":7}`,
		`{"type":"offset_for_time",` + inStream + `"shard":0,"at_micros":0,"request_id":7}`,
		`{"type":"cache_watch",` + inCache + `"key":"k"}`,
	}
}

// TestGoldenSubscription: a subscription of the log, byte for byte, with all
// a client can ask for and with what an old one gets (wire 4.5, 10).
func TestGoldenSubscription(t *testing.T) {
	c := newGolden(t, felixtest.WithSetting("record-publishers", "true"))
	c.session().exchange(exchange{`{"type":"publish_batch",` + inStream + `"payloads":["YQ==","Yg=="],"request_id":1}`, `{"type":"publish_ok","request_id":1,"offset":0}`})
	records := [][]byte{[]byte("a"), []byte("b")}
	times := []uint64{goldenMicros, goldenMicros}
	for _, tc := range []struct {
		name       string
		flags      int
		subscribed string
		want       raw.Events
	}{
		{"nothing offered", 0, ``, raw.Events{Records: records}},
		{"offsets", raw.FlagEventOffsets, `,"start_offset":0,"live_offset":2`, raw.Events{Records: records}},
		{"publishers", raw.FlagEventPublisher, ``, raw.Events{Publisher: "tester", Records: records}},
		{"times", raw.FlagEventTimestamps, ``, raw.Events{Records: records, Timestamps: times}},
		{"everything", 0x7FFF, `,"start_offset":0,"live_offset":2`, raw.Events{Publisher: "tester", Records: records, Timestamps: times}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := c.in(t)
			s := c.open()
			s.frames(raw.JSON(fmt.Sprintf(`{"type":"auth","tenant_id":"t1","token":%q,"client_flags":%d}`, c.node.Token(), tc.flags)))
			if f := s.frame(); f.Type() != "auth_ok" {
				t.Fatalf("answer to auth: %s", f.Describe())
			}
			s.frames(raw.JSON(`{"type":"subscribe",` + inStream + `"subscription_id":77,"start":"earliest"}`))
			s.wantText(`{"type":"subscribed","subscription_id":77` + tc.subscribed + `}`)
			events := c.acceptEvents()
			events.wantText(`{"type":"event_stream_hello","subscription_id":77}`)
			f := events.frame()
			want := tc.want
			want.SubscriptionID = 77
			want.Flags = uint16(tc.flags & (raw.FlagEventOffsets | raw.FlagEventPublisher | raw.FlagEventTimestamps))
			want.Flags |= f.Flags & (raw.FlagEventBatch | raw.FlagEventBatchShared)
			if w := want.Frame(); f.Flags != w.Flags || string(f.Payload) != string(w.Payload) {
				t.Errorf("got  %s\nwant %s", f.Describe(), w.Describe())
			}
			events.abandon()
		})
	}
}

// TestGoldenWatch: a watch, byte for byte and in the order of wire 11.
func TestGoldenWatch(t *testing.T) {
	c := newGolden(t)
	s := c.session()
	put := func(id int, key, value, ttl string) {
		t.Helper()
		s.exchange(exchange{fmt.Sprintf(`{"type":"cache_put",%s"key":%q,"value":%q,"request_id":%d,"ttl_ms":%s}`, inCache, key, value, id, ttl),
			fmt.Sprintf(`{"type":"cache_ok","request_id":%d}`, id)})
	}
	put(1, "k", "YQ==", "null")
	put(2, "t", "dA==", "60000")
	watch := func(members string, started string, events ...string) *rawStream {
		t.Helper()
		w := c.session()
		w.frames(raw.JSON(`{"type":"cache_watch",` + inCache + members + `}`))
		w.wantText(`{"type":"cache_watch_started",` + started + `}`)
		w.wantEnd()
		e := c.acceptEvents()
		id, _ := raw.JSON(`{` + started + `}`).Uint("subscription_id")
		e.wantText(fmt.Sprintf(`{"type":"event_stream_hello","subscription_id":%d}`, id))
		for _, want := range events {
			e.wantText(want)
		}
		return e
	}
	const first = `{"type":"cache_event","key":"k","value":"YQ==","offset":0,"expires_at_millis":0}`
	const second = `{"type":"cache_event","key":"t","value":"dA==","offset":1,"expires_at_millis":1700000060000}`
	live := watch(`"prefix":"","subscription_id":5`, `"subscription_id":5,"resume_offset":2,"resnapshot":false`)
	resumed := watch(`"prefix":"","from_offset":0,"subscription_id":6`, `"subscription_id":6,"resume_offset":2,"resnapshot":false`, first, second)
	retained := watch(`"prefix":"","retained":true,"shard":0,"subscription_id":7`, `"subscription_id":7,"resume_offset":2,"resnapshot":false,"retained_count":2`, first, second)
	key := watch(`"key":"k","shard":9,"retained":false,"subscription_id":8`, `"subscription_id":8,"resume_offset":2,"resnapshot":false`)
	none := watch(`"key":"none","retained":true,"subscription_id":9`, `"subscription_id":9,"resume_offset":2,"resnapshot":false,"retained_count":0`)
	s.exchange(exchange{`{"type":"cache_delete",` + inCache + `"key":"k","request_id":3}`, `{"type":"cache_value",` + inCache + `"key":"k","value":"YQ==","request_id":3}`})
	put(4, "none", "", "null")
	const deleted = `{"type":"cache_event","key":"k","offset":2,"expires_at_millis":0}`
	const put3 = `{"type":"cache_event","key":"none","value":"","offset":3,"expires_at_millis":0}`
	for _, e := range []*rawStream{live, resumed, retained} {
		e.wantText(deleted)
		e.wantText(put3)
	}
	key.wantText(deleted)
	none.wantText(put3)

	t.Run("refusals", func(t *testing.T) {
		for _, tc := range []struct{ members, answer string }{
			{`"prefix":"","from_offset":5`, `{"type":"subscribe_cursor_error","reason":"in_future","requested":5,"available":4}`},
			{`"key":"k","from_offset":18446744073709551615`, `{"type":"subscribe_cursor_error","reason":"in_future","requested":18446744073709551615,"available":4}`},
			{`"key":"k","prefix":""`, `{"type":"error","message":"cache_watch takes exactly one of key or prefix","code":"invalid_request","retry":"fatal"}`},
			{`"shard":0`, `{"type":"error","message":"cache_watch takes exactly one of key or prefix","code":"invalid_request","retry":"fatal"}`},
			{`"key":"k","retained":true,"from_offset":0`, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`},
			{`"prefix":"","shard":1`, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`},
			{`"key":""`, `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`},
		} {
			c.in(t).session().exchange(exchange{`{"type":"cache_watch",` + inCache + tc.members + `}`, tc.answer})
		}
	})
}
