package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// TestClientSubscribeAnswers: refusals of subscribe, and whether the client tries
// again by itself.
func TestClientSubscribeAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, message, class string
		attempts             int
	}{
		{"error.bad_offset_is_typed, too old", `{"type":"subscribe_cursor_error","reason":"too_old","requested":3,"available":17}`, "CursorError", 1},
		{"error.bad_offset_is_typed, in future", `{"type":"subscribe_cursor_error","reason":"in_future","requested":99,"available":17}`, "CursorError", 1},
		{"forbidden", `{"type":"error","message":"forbidden","code":"forbidden","retry":"fatal"}`, "AuthError", 1},
		{"limit exceeded", `{"type":"error","message":"x","code":"limit_exceeded","retry":"fatal"}`, "FelixError", 1},
		{"error.unknown_stream_is_typed", `{"type":"error","message":"x","code":"not_found","retry":"retry_after"}`, "NotFoundError", 5},
		{"shard unavailable", `{"type":"error","message":"x","code":"shard_unavailable","retry":"retry"}`, "ShardUnavailableError", 5},
		{"no code", `{"type":"error","message":"x"}`, "FelixError", 5},
		{"owner without an address", `{"type":"not_leader","node_id":"n","generation":4}`, "ShardUnavailableError", 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){say(tc.message)}}
			l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: q.handle})
			if err := l.subscribe(map[string]any{"start": 3}); raised(err) != tc.class || q.count() != tc.attempts {
				t.Errorf("%v after %d attempts, want %s after %d", err, q.count(), tc.class, tc.attempts)
			}
		})
	}
}

// TestClientEventFrames: every event layout, and offsets past 2^53.
func TestClientEventFrames(t *testing.T) {
	const base = 1<<53 + 1_700_000_000_000_001
	plain := raw.FlagEventBatchShared | raw.FlagEventOffsets
	q := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){subscribeOK(7, `,"start_offset":1,"live_offset":1,"queue_capacity":9,"new":1`, func(e *recorder.Stream) {
		e.Send(
			events(base, "a", "", "c"),
			raw.Events{Flags: raw.FlagEventBatch | raw.FlagEventOffsets, SubscriptionID: 7, BaseOffset: base + 3, Records: [][]byte{[]byte("named")}}.Frame(),
			raw.Events{Flags: uint16(plain | raw.FlagEventSkipped), BaseOffset: base + 20, Skipped: 16, Records: [][]byte{[]byte("skipped")}}.Frame(),
			events(base+21),
			raw.Events{Flags: uint16(plain | raw.FlagEventPublisher | raw.FlagEventTimestamps), BaseOffset: base + 21, Publisher: "p", Records: [][]byte{[]byte("all")}, Timestamps: []uint64{5}}.Frame(),
			raw.Events{Flags: raw.FlagEventBatchShared, Records: [][]byte{[]byte("bare")}}.Frame(),
			raw.JSON(`{"type":"event","tenant_id":"t1","namespace":"default","stream":"s","payload":"YQ=="}`),
			raw.JSON(`{"type":"event_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":["Yg=="],"base_offset":7}`),
			raw.Events{Flags: raw.FlagEventBatch, SubscriptionID: 8, Records: [][]byte{[]byte("foreign")}}.Frame(),
		)
	})}}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: q.handle})
	if err := l.subscribe(nil); err != nil {
		t.Fatal(err)
	}
	const none = ^uint64(0)
	for _, want := range []struct {
		payload         string
		offset, skipped uint64
	}{
		{"a", base, 0}, {"", base + 1, 0}, {"c", base + 2, 0}, {"named", base + 3, 0}, {"skipped", base + 20, 16},
		{"all", base + 21, 0}, {"bare", none, 0}, {"a", none, 0}, {"b", 7, 0},
	} {
		e, err := l.nextEvent("sub", patience.Seconds())
		if err != nil || e == nil {
			t.Fatalf("%q: %v, %v", want.payload, e, err)
		}
		offset := none
		if e.Offset != nil {
			offset = *e.Offset
		}
		if string(e.Payload.Bytes) != want.payload || offset != want.offset || e.SkippedBefore != want.skipped {
			t.Errorf("got %q at %d after %d skipped, want %+v", e.Payload.Bytes, offset, e.SkippedBefore, want)
		}
	}
	if e, err := l.nextEvent("sub", patience.Seconds()); raised(err) != "FelixError" {
		t.Errorf("a batch of another subscription: %v, %v", e, err)
	}
}

// TestClientSubscriptionEnds: each way an event stream can end, and what becomes of
// the subscription. Only FIN and stream_deleted are taken for an end.
func TestClientSubscriptionEnds(t *testing.T) {
	t.Parallel()
	two := events(100, "a", "b")
	send := func(end func(*recorder.Stream), frames ...raw.Frame) func(*recorder.Stream) {
		return func(e *recorder.Stream) {
			e.Send(frames...)
			// A reset overtakes what was sent before it; the test reads first.
			go func() { time.Sleep(200 * time.Millisecond); end(e) }()
		}
	}
	reset := func(e *recorder.Stream) { e.Reset(1) }
	closeConn := func(e *recorder.Stream) { e.Conn.Close(0, "broker shutting down") }
	last := func(m string) func(*recorder.Stream) {
		return func(e *recorder.Stream) { e.Send(raw.JSON(m)); e.FIN() }
	}
	const offsets = `,"start_offset":50,"live_offset":60`
	for _, tc := range []struct {
		name  string
		start any
		first func(*recorder.Stream, raw.Frame)
		then  func(*recorder.Stream, raw.Frame) // answer to the next subscribe; nil: there is none
		want  string                            // "end", an exception class, or the start of the next subscribe
	}{
		{"FIN is a clean end", nil, subscribeOK(1, "", send((*recorder.Stream).FIN, two)), nil, "end"},
		{"stream_deleted is a clean end", nil, subscribeOK(1, "", send(last(`{"type":"stream_deleted","subscription_id":1}`), two)), nil, "end"},
		{"an error as last frame is raised", nil, subscribeOK(1, "", send(last(`{"type":"error","message":"token expired","code":"unauthenticated","retry":"fatal"}`), two)), nil, "AuthError"},
		{"an unknown message is raised", nil, subscribeOK(1, "", send(last(`{"type":"nonesuch"}`), two)), nil, "FelixError"},
		{"an unknown flag is raised", nil, subscribeOK(1, "", send(func(e *recorder.Stream) { e.Send(raw.Frame{Flags: raw.FlagUndefined}) }, two)), nil, "FelixError"},
		{"reconnect.subscription_resumes_at_the_next_offset, RESET", nil, subscribeOK(1, "", send(reset, two)), subscribeOK(2, "", nil), `{"offset":102}`},
		{"reconnect.subscription_resumes_at_the_next_offset, close", nil, subscribeOK(1, "", send(closeConn, two)), subscribeOK(2, "", nil), `{"offset":102}`},
		{"watch.lag_is_reported_rather_than_silent, for streams", nil, subscribeOK(1, "", send(last(`{"type":"subscription_lagged","subscription_id":1,"resume_from":150}`), two)), subscribeOK(2, "", nil), `{"offset":102}`},
		{"a moved shard resumes at the later place", nil, subscribeOK(1, "", send(last(`{"type":"shard_moved","subscription_id":1,"resume_from":150,"generation":3}`), two)), subscribeOK(2, "", nil), `{"offset":150}`},
		{"nothing received, no offsets known", nil, subscribeOK(1, "", send(closeConn)), nil, "ConnectionError"},
		{"nothing received of an explicit offset", 7, subscribeOK(1, "", send(reset)), nil, "ConnectionError"},
		{"nothing received, start_offset known", nil, subscribeOK(1, offsets, send(closeConn)), subscribeOK(2, "", nil), `{"offset":50}`},
		{"events without offsets", nil, subscribeOK(1, "", send(closeConn, raw.Events{Flags: raw.FlagEventBatchShared, Records: [][]byte{[]byte("a"), []byte("b")}}.Frame())), nil, "ConnectionError"},
		{"the place is gone", nil, subscribeOK(1, "", send(closeConn, two)), say(`{"type":"subscribe_cursor_error","reason":"too_old","requested":102,"available":150}`), "CursorError"},
		{"the place is not there yet", nil, subscribeOK(1, "", send(closeConn, two)), say(`{"type":"subscribe_cursor_error","reason":"in_future","requested":102,"available":2}`), "CursorError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			then := tc.then
			if then == nil {
				then = say(`{"type":"error","message":"unexpected","code":"invalid_request","retry":"fatal"}`)
			}
			q := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){tc.first, then}}
			l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: q.handle})
			kwargs := map[string]any{}
			if tc.start != nil {
				kwargs["start"] = tc.start
			}
			if err := l.subscribe(kwargs); err != nil {
				t.Fatal(err)
			}
			got := l.ending(t, q)
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if tc.then == nil && q.count() != 1 {
				t.Errorf("%d subscribes", q.count())
			}
		})
	}
}

// ending reads a subscription to its end: "end", the class of the exception,
// or where the client subscribed again.
func (l *lab) ending(t *testing.T, q *sequence) string {
	t.Helper()
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); {
		_, err := l.nextEvent("sub", 0.2)
		if err != nil {
			return raised(err)
		}
		var closed bool
		if err := l.attribute(&closed, "sub", "closed"); err != nil {
			t.Fatal(err)
		}
		if closed {
			return "end"
		}
		if q.count() > 1 {
			if _, err := l.nextEvent("sub", 0.5); err != nil {
				return raised(err)
			}
			again := l.requests("subscribe")[1]
			_, start, _ := strings.Cut(again, `"start":`)
			return strings.TrimSuffix(start, "}")
		}
	}
	t.Fatal("the subscription neither ends nor resumes")
	return ""
}
