package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// A logCall is a call of the client that only a broker with a log answers.
type logCall struct {
	kind, method string
	args         []any
	// sent is the request, with ID for its id.
	sent string
}

var logCalls = []logCall{
	{"counter_add", "counter_add", []any{"t1", "default", "c", "k", -7},
		`{"type":"counter_add","tenant_id":"t1","namespace":"default","cache":"c","key":"k","delta":-7,"request_id":ID}`},
	{"counter_get", "counter_get", []any{"t1", "default", "c", "k"},
		`{"type":"counter_get","tenant_id":"t1","namespace":"default","cache":"c","key":"k","request_id":ID}`},
	{"commit", "commit", []any{"t1", "default", pyBytes("e"), []any{
		op("put", "s", "a", pyBytes("v")), op("publish", "s", pyBytes("x")), op("delete", "s", "b")}},
		`{"type":"commit","tenant_id":"t1","namespace":"default","stream":"s","entity_key":"ZQ==","event":"eA==","changes":[{"op":"put","key":"a","value":"dg=="},{"op":"delete","key":"b"}],"request_id":ID}`},
	{"commit", "commit", []any{"t1", "default", pyBytes(""), []any{op("enqueue", "s", pyBytes(""))}},
		`{"type":"commit","tenant_id":"t1","namespace":"default","stream":"s","entity_key":"","event":"","changes":[],"request_id":ID}`},
	{"state_get", "state_get", []any{"t1", "default", "s", pyBytes("e"), "a"},
		`{"type":"state_get","tenant_id":"t1","namespace":"default","stream":"s","entity_key":"ZQ==","key":"a","request_id":ID}`},
}

func op(of string, args ...any) map[string]any {
	return map[string]any{"op": append([]any{of}, args...)}
}

// replying answers a request with a JSON message in which ID is its id.
func replying(message string) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, f raw.Frame) {
		id, _ := f.Uint("request_id")
		s.Send(raw.JSON(strings.ReplaceAll(message, "ID", fmt.Sprint(id))))
	}
}

var logAnswers = map[string]string{
	"counter_add": `{"type":"counter_value","value":-9223372036854775808,"request_id":ID,"new":1}`,
	"counter_get": `{"type":"counter_value","request_id":ID}`,
	"commit":      `{"type":"commit_ok","request_id":ID,"offset":18446744073709551615,"new":1}`,
	"state_get":   `{"type":"state_value","value":"dg==","version":18446744073709551615,"as_of":18446744073709551615,"request_id":ID}`,
}

// TestClientLogRequests: counters and commits, byte for byte, and what the
// client makes of values past 2^53.
func TestClientLogRequests(t *testing.T) {
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: func(s *recorder.Stream, f raw.Frame) bool {
		answer, ok := logAnswers[f.Type()]
		if ok {
			replying(answer)(s, f)
		}
		return ok
	}})
	for _, c := range logCalls {
		var got any
		if err := l.call(&got, "c", c.method, c.args, nil); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		sent := l.requests(c.kind)
		last := sent[len(sent)-1]
		id, _ := raw.JSON(last).Uint("request_id")
		if want := strings.ReplaceAll(c.sent, "ID", fmt.Sprint(id)); last != want {
			t.Errorf("%s, not\n%s", last, want)
		}
	}
	var sum, none *int64
	var receipt struct{ Offset uint64 }
	var state struct {
		Version uint64 `json:"version"`
		AsOf    uint64 `json:"as_of"`
	}
	for into, c := range map[any]logCall{&sum: logCalls[0], &none: logCalls[1], &receipt: logCalls[2], &state: logCalls[4]} {
		if err := l.call(into, "c", c.method, c.args, nil); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
	}
	if sum == nil || *sum != -1<<63 || none != nil || receipt.Offset != 1<<64-1 || state.Version != 1<<64-1 || state.AsOf != 1<<64-1 {
		t.Errorf("%v, %v, %+v, %+v", sum, none, receipt, state)
	}
	t.Run("the streams they use", func(t *testing.T) {
		opened := make(map[int64]int)
		for _, e := range l.server.Frames(nil) {
			opened[e.Stream]++ // frames of the stream, its auth included
		}
		for _, e := range l.server.Frames(nil) {
			switch e.Frame.Type() {
			case "commit", "state_get":
				if opened[e.Stream] != 2 {
					t.Errorf("%s shares stream %d", e.Frame.Type(), e.Stream)
				}
			case "counter_add", "counter_get":
				if e.Stream >= 4*40 {
					t.Errorf("%s on stream %d, which is none of the first 40", e.Frame.Type(), e.Stream)
				}
			}
		}
	})
}

// TestClientLogAnswers: refusals of counters and commits, and how often the
// client sends the request.
func TestClientLogAnswers(t *testing.T) {
	t.Parallel()
	answers := []struct {
		name, message string
		// class and attempts for each kind of request
		counter, commit, state string
		counters, commits      int
	}{
		{"fatal", `{"type":"error","message":"x","code":"invalid_request","retry":"fatal"}`, "FelixError", "FelixError", "FelixError", 1, 1},
		{"forbidden", `{"type":"error","message":"forbidden","code":"forbidden","retry":"fatal"}`, "AuthError", "AuthError", "AuthError", 1, 1},
		{"not found", `{"type":"error","message":"x","code":"not_found","retry":"retry_after"}`, "NotFoundError", "NotFoundError", "NotFoundError", 1, 1},
		{"shard unavailable", `{"type":"error","message":"x","code":"shard_unavailable","retry":"retry"}`, "ShardUnavailableError", "ShardUnavailableError", "ShardUnavailableError", 1, 1},
		{"overloaded", `{"type":"error","message":"x","code":"overloaded","retry":"retry_after","detail":{"retry_after_ms":5}}`, "OverloadedError", "OverloadedError", "OverloadedError", 1, 1},
		{"storage, outcome unknown", `{"type":"error","message":"x","code":"storage","retry":"outcome_unknown"}`, "OutcomeUnknownError", "OutcomeUnknownError", "OutcomeUnknownError", 1, 1},
		{"refused", `{"type":"publish_refused","request_id":ID,"reason":{"offset_mismatch":{"tail":5}},"message":"x"}`, "", "FelixError", "FelixError", 0, 1},
	}
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []logCall{logCalls[0], logCalls[1], logCalls[2], logCalls[4]} {
				want, attempts := tc.counter, tc.counters
				switch c.kind {
				case "commit":
					want, attempts = tc.commit, tc.commits
				case "state_get":
					want, attempts = tc.state, tc.commits
				}
				if want == "" {
					continue
				}
				q := &sequence{kind: c.kind, answers: []func(*recorder.Stream, raw.Frame){replying(tc.message)}}
				l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: q.handle})
				if err := l.call(nil, "c", c.method, c.args, nil); raised(err) != want || q.count() != attempts {
					t.Errorf("%s: %v after %d attempts, want %s after %d", c.method, err, q.count(), want, attempts)
				}
			}
		})
	}
}
