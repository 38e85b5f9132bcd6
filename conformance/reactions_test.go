package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// These tests answer the published client by hand, right and wrong. They fix
// what a broker's answers mean to it; docs/interop.md says it in prose.

// Codes and classes of wire 16.
const (
	codeShardUnavail  = 5
	codeQuorumTimeout = 7
	codeInternal      = 13

	classRetry          = 1
	classOutcomeUnknown = 4
	classFatal          = 5
)

func failedAck(code uint16, class uint8) raw.Ack {
	return raw.Ack{Flags: raw.FlagAckCode | raw.FlagAckDetail, Status: 1, Message: "some text",
		Code: code, Retry: class, Reason: "why", RetryAfterMS: 20}
}

// TestClientPublishAnswers: acks, refusals and their exception classes.
func TestClientPublishAnswers(t *testing.T) {
	answers := &sequence{kind: "binary publish", answers: []func(*recorder.Stream, raw.Frame){ackWith(raw.Ack{})}}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: answers.handle})

	t.Run("an ack without an offset is None", func(t *testing.T) {
		var offset *uint64
		if err := l.call(&offset, "c", "publish", []any{"t1", "default", "s", pyBytes("x")}, nil); err != nil || offset != nil {
			t.Fatalf("%v, %v", offset, err)
		}
	})
	t.Run("ack.carries_the_offset", func(t *testing.T) {
		for _, want := range []uint64{0, 1_700_000_000_000_000, 1<<63 + 5} {
			answers.restart(ackWith(raw.Ack{Flags: raw.FlagAckOffset, Offset: want}))
			var offset *uint64
			if err := l.call(&offset, "c", "publish", []any{"t1", "default", "s", pyBytes("x")}, nil); err != nil || offset == nil || *offset != want {
				t.Fatalf("%v, %v; want %d", offset, err, want)
			}
		}
	})
	t.Run("every code has its class", func(t *testing.T) {
		for code, want := range map[uint16]string{
			1: "AuthError", 2: "AuthError", 3: "NotFoundError", 4: "FelixError", 5: "ShardUnavailableError",
			6: "ShardUnavailableError", 7: "FelixError", 8: "FelixError", 9: "FelixError", 10: "OverloadedError",
			11: "FelixError", 13: "FelixError", 14: "FelixError", 15: "FelixError",
			// Beyond wire 16.2: the client knows two more by name.
			16: "AuthError", 17: "FelixError", 18: "FelixError",
		} {
			for class := uint8(1); class <= 6; class++ {
				answers.restart(ackWith(failedAck(code, class)))
				err := l.publish(nil)
				want := want
				if class == classOutcomeUnknown {
					want = "OutcomeUnknownError"
				}
				e, ok := err.(*clientError)
				if !ok || e.Class != want || e.Detail["reason"] != "why" || e.Detail["retry_after_ms"] != float64(20) || answers.count() != 1 {
					t.Errorf("code %d, class %d: %v after %d publishes, want %s", code, class, err, answers.count(), want)
				}
			}
		}
	})
	t.Run("codes keep their names", func(t *testing.T) {
		for code, want := range map[uint16]string{1: "unauthenticated", 12: "draining", 16: "revoked", 17: "stale_width", 18: "code_18"} {
			answers.restart(ackWith(failedAck(code, classFatal)))
			if e, ok := l.publish(nil).(*clientError); !ok || e.Code != want {
				t.Errorf("code %d is %v, want %s", code, e, want)
			}
		}
	})
	t.Run("error.quorum_timeout_is_outcome_unknown", func(t *testing.T) {
		answers.restart(ackWith(failedAck(codeQuorumTimeout, classOutcomeUnknown)))
		if got := raised(l.publish(nil)); got != "OutcomeUnknownError" {
			t.Error(got)
		}
	})
	t.Run("retry.ambiguous_outcomes_are_not_silently_retried", func(t *testing.T) {
		answers.restart(ackWith(failedAck(codeInternal, classOutcomeUnknown)), ackWith(raw.Ack{}))
		if err := l.publish(nil); raised(err) != "OutcomeUnknownError" || answers.count() != 1 {
			t.Errorf("%v after %d publishes", err, answers.count())
		}
	})
	t.Run("retry.terminal_failures_are_not_retried", func(t *testing.T) {
		answers.restart(ackWith(failedAck(codeForbidden, classFatal)), ackWith(raw.Ack{}))
		if err := l.publish(map[string]any{"at_least_once": true}); raised(err) != "AuthError" || answers.count() != 1 {
			t.Errorf("%v after %d publishes", err, answers.count())
		}
	})
	t.Run("ack.at_least_once_may_duplicate_and_says_so", func(t *testing.T) {
		answers.restart(ackWith(failedAck(codeInternal, classOutcomeUnknown)), ackWith(raw.Ack{}))
		if err := l.publish(map[string]any{"at_least_once": true}); err != nil || answers.count() != 2 {
			t.Errorf("%v after %d publishes", err, answers.count())
		}
		var doc string
		if err := l.attribute(&doc, "c", "__doc__"); err != nil {
			t.Fatal(err)
		}
		if err := l.keep("publish", "c", "__getattribute__", []any{"publish"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := l.attribute(&doc, "publish", "__doc__"); err != nil || !strings.Contains(doc, "duplicate") {
			t.Errorf("documentation does not say so: %q, %v", doc, err)
		}
	})
	t.Run("error.shard_unavailable_is_retryable", func(t *testing.T) {
		answers.restart(ackWith(failedAck(codeShardUnavail, classRetry)))
		if e, ok := l.publish(nil).(*clientError); !ok || e.Class != "ShardUnavailableError" || e.Retry != "retry" {
			t.Errorf("%v", e)
		}
		answers.restart(ackWith(failedAck(codeShardUnavail, classRetry)), ackWith(raw.Ack{}))
		if err := l.publish(map[string]any{"at_least_once": true}); err != nil || answers.count() != 2 {
			t.Errorf("%v after %d publishes", err, answers.count())
		}
	})
}

// pipelined answers auth with a publish window.
func pipelined(window int) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, _ raw.Frame) {
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"auth_ok","server_flags":%d,"server_features":%d,"publish_window":%d}`,
			recorder.AllFlags, inMemory|featurePublishPipeline|featureStreamPublishWindow, window)))
	}
}

// TestClientSilentBroker: a broker that answers no publish. Unacked ones return all
// the same.
func TestClientSilentBroker(t *testing.T) {
	silent := &sequence{kind: "binary publish", answers: []func(*recorder.Stream, raw.Frame){func(*recorder.Stream, raw.Frame) {}}}
	t.Run("ack.none_does_not_wait_for_the_broker", func(t *testing.T) {
		l := newLab(t, &recorder.Script{AuthOK: pipelined(8), Handle: silent.handle})
		for range 100 {
			if err := l.publish(map[string]any{"ack": "none"}); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "every publish has arrived", func() error {
			if n := silent.count(); n != 100 {
				return fmt.Errorf("%d of 100", n)
			}
			return nil
		})
	})
}

// TestClientPublishStreamLost: what costs the client its connection. The next call
// opens another, so none of these may be an answer to an ordinary refusal.
func TestClientPublishStreamLost(t *testing.T) {
	for name, answer := range map[string]func(*recorder.Stream, raw.Frame){
		"ack without a code":  ackWith(raw.Ack{Status: 1, Message: "publish queue full"}),
		"ack of another id":   func(s *recorder.Stream, _ raw.Frame) { s.Send(raw.Ack{RequestID: 999}.Frame()) },
		"error":               say(`{"type":"error","message":"forbidden","code":"forbidden","retry":"fatal"}`),
		"not_leader":          say(`{"type":"not_leader","node_id":"n","generation":1}`),
		"end of stream":       func(s *recorder.Stream, _ raw.Frame) { s.FIN() },
		"reset":               func(s *recorder.Stream, _ raw.Frame) { s.Reset(1) },
		"draining":            ackWith(failedAck(12, classRetry)),
		"offset on a failure": ackWith(raw.Ack{Flags: raw.FlagAckOffset, Status: 1}),
		"status 2":            ackWith(raw.Ack{Status: 2}),
	} {
		t.Run(name, func(t *testing.T) {
			q := &sequence{kind: "binary publish", answers: []func(*recorder.Stream, raw.Frame){answer, ackWith(raw.Ack{})}}
			l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: q.handle})
			if err := l.publish(nil); err == nil {
				t.Fatal("the publish succeeded")
			}
			if err := l.publish(nil); err != nil {
				t.Fatalf("the next publish: %v", err)
			}
			if n := len(l.server.Conns()); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

// TestClientCacheAnswers: a coded error leaves the client's connection alone, an
// uncoded one costs it (wire 8.3).
func TestClientCacheAnswers(t *testing.T) {
	q := &sequence{kind: "cache_get", answers: []func(*recorder.Stream, raw.Frame){nil}}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: q.handle})
	get := func() error { return l.call(nil, "c", "cache_get", []any{"t1", "default", "c", "k"}, nil) }
	send := func(m string) func(*recorder.Stream, raw.Frame) {
		return func(s *recorder.Stream, _ raw.Frame) { s.Send(raw.JSON(m)) }
	}
	for _, tc := range []struct{ message, class string }{
		{`{"type":"error","message":"x","code":"forbidden","retry":"fatal"}`, "AuthError"},
		{`{"type":"error","message":"x","code":"not_found","retry":"retry_after"}`, "NotFoundError"},
		{`{"type":"error","message":"x","code":"overloaded","retry":"retry_after","detail":{"retry_after_ms":10,"new":[1]}}`, "OverloadedError"},
		{`{"type":"error","message":"x","code":"internal","retry":"outcome_unknown"}`, "OutcomeUnknownError"},
		{`{"type":"error","message":"x","code":"never_heard","retry":"never_heard"}`, "FelixError"},
	} {
		q.restart(send(tc.message))
		if err := get(); raised(err) != tc.class {
			t.Errorf("%s: %v", tc.message, err)
		}
	}
	if n := len(l.server.Conns()); n != 1 {
		t.Fatalf("%d connections after coded errors", n)
	}
	q.restart(send(`{"type":"error","message":"forbidden"}`))
	if err := get(); err == nil {
		t.Error("an uncoded error was no error")
	}
	if n := len(l.server.Conns()); n != 2 {
		t.Errorf("%d connections after an uncoded error", n)
	}
}

// TestClientAuthAnswers: exception classes of refused connects.
func TestClientAuthAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, class string
		answer      func(*recorder.Stream, raw.Frame)
	}{
		{"error.unauthorized_is_typed", "AuthError", say(`{"type":"error","message":"auth failed","code":"unauthenticated","retry":"fatal"}`)},
		{"without a code", "AuthError", say(`{"type":"error","message":"auth failed"}`)},
		{"draining", "ConnectionError", say(`{"type":"error","message":"broker is shutting down","code":"draining","retry":"retry"}`)},
		{"end of stream", "ConnectionError", func(s *recorder.Stream, _ raw.Frame) { s.FIN() }},
		{"connection closed", "ConnectionError", func(s *recorder.Stream, _ raw.Frame) { s.Conn.Close(1, "authentication timeout") }},
		{"members it does not know", "", func(s *recorder.Stream, _ raw.Frame) {
			s.Send(raw.JSON(`{"type":"auth_ok","server_flags":32767,"server_features":0,"future":{"a":1}}`))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, &recorder.Script{})
			l.server.SetScript(&recorder.Script{AuthOK: tc.answer})
			if err := l.connect("other", l.server.Addr(), l.ca, nil); raised(err) != tc.class {
				t.Errorf("%v, want %q", err, tc.class)
			}
		})
	}
}

// TestClientPublishWindow: the client keeps to the window it is granted, and takes
// acks in any order.
func TestClientPublishWindow(t *testing.T) {
	const window, publishes = 4, 24
	arrived := make(chan func(), publishes)
	l := newLab(t, &recorder.Script{AuthOK: pipelined(window), Handle: func(s *recorder.Stream, f raw.Frame) bool {
		if kindOf(f) != "binary publish" {
			return false
		}
		arrived <- func() { ackWith(raw.Ack{})(s, f) }
		return true
	}})
	var calls []pending
	for range publishes {
		calls = append(calls, l.begin("c", "publish", []any{"t1", "default", "s", pyBytes("x")}, nil))
	}
	// The client sends what is queued when it looks, and looks again when an
	// ack arrives: the first round may be short of the window, none exceeds it.
	most := 0
	for answered := 0; answered < publishes; {
		var acks []func()
		for more := true; more; {
			select {
			case ack := <-arrived:
				acks = append(acks, ack)
			case <-time.After(100 * time.Millisecond):
				more = len(acks) == 0
			}
		}
		if len(acks) > window {
			t.Fatalf("%d publishes unanswered, the window is %d", len(acks), window)
		}
		most = max(most, len(acks))
		answered += len(acks)
		slices.Reverse(acks)
		for _, ack := range acks {
			ack()
		}
	}
	if most != window {
		t.Errorf("at most %d publishes unanswered, the window is %d", most, window)
	}
	for _, c := range calls {
		if err := c.result(nil); err != nil {
			t.Error(err)
		}
	}
}

const featureStreamPublishWindow = 0x0002_0000

// TestClientSubscribeAnswers: refusals of subscribe, and whether the client tries
// again by itself.
func TestClientSubscribeAnswers(t *testing.T) {
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

// TestClientRedirects: the client follows not_leader to the owner and takes the
// start offset along (wire 15).
func TestClientRedirects(t *testing.T) {
	q := &sequence{kind: "subscribe"}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureRedirect, Handle: q.handle})
	delivers := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){subscribeOK(1, "", func(e *recorder.Stream) { e.Send(events(5, "found")) })}}
	owner := startRecorder(t, recorder.Options{PKI: l.server.PKI(), Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: delivers.handle}})
	forwards := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){
		say(fmt.Sprintf(`{"type":"not_leader","node_id":"c","addr":%q,"generation":2}`, owner.Addr()))}}
	hop := startRecorder(t, recorder.Options{PKI: l.server.PKI(), Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureRedirect, Handle: forwards.handle}})
	q.restart(say(fmt.Sprintf(`{"type":"not_leader","node_id":"b","addr":%q,"generation":1}`, hop.Addr())))

	t.Run("redirect.follows_to_the_shard_owner", func(t *testing.T) {
		// It is not reported as a failure either.
		if err := l.subscribe(map[string]any{"start": 5}); err != nil {
			t.Fatal(err)
		}
		if e, err := l.nextEvent("sub", patience.Seconds()); err != nil || e == nil || string(e.Payload.Bytes) != "found" {
			t.Fatalf("%v, %v", e, err)
		}
	})
	t.Run("redirect.carries_the_start_offset_through_every_hop", func(t *testing.T) {
		for _, s := range []*recorder.Server{l.server, hop, owner} {
			sent := s.Frames(func(e recorder.Entry) bool { return e.Frame.Type() == "subscribe" })
			if len(sent) != 1 || !strings.HasSuffix(string(sent[0].Frame.Payload), `"start":{"offset":5}}`) {
				t.Errorf("subscribes at one hop: %v", sent)
			}
		}
	})
}

const featureRedirect = 0x0000_0002

// TestClientBrokerLoss: a broker that vanishes without a word.
func TestClientBrokerLoss(t *testing.T) {
	pki, err := recorder.NewPKI()
	if err != nil {
		t.Fatal(err)
	}
	second := startRecorder(t, recorder.Options{PKI: pki, Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory}})
	first := startRecorder(t, recorder.Options{PKI: pki, Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureTopology,
		Handle: func(s *recorder.Stream, f raw.Frame) bool {
			if f.Type() != "topology" {
				return false
			}
			s.Send(raw.JSON(fmt.Sprintf(`{"type":"topology_view","brokers":[{"node_id":"b","addr":%q}]}`, second.Addr())))
			return true
		}}})
	l := newLab(t, &recorder.Script{})
	ca := l.ca + ".second"
	if err := os.WriteFile(ca, pki.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.connect("c", first.Addr(), ca, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("reconnect.discovers_brokers_from_one_seed", func(t *testing.T) {
		var endpoints []string
		if err := l.call(&endpoints, "c", "endpoints", nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{first.Addr(), second.Addr()} {
			if len(endpoints) != 2 || !slices.Contains(endpoints, want) {
				t.Errorf("%v, without %s", endpoints, want)
			}
		}
	})
	t.Run("retry.transport_failures_are_retried_against_another_broker", func(t *testing.T) {
		first.Kill()
		if err := l.publish(map[string]any{"at_least_once": true}); err != nil {
			t.Fatal(err)
		}
		if n := len(second.Frames(func(e recorder.Entry) bool { return kindOf(e.Frame) == "binary publish" })); n != 1 {
			t.Errorf("%d publishes at the other broker", n)
		}
	})
}
