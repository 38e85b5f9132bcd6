package conformance

import (
	"fmt"
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
