package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// withGroups are the features of a node with storage that the published
// client makes something of when it works through a queue.
const withGroups = withLog | featureConsumerGroup | featureGroupDeadLetters | featureGroupConsumer | featureGroupSkipped |
	featureGroupPublisher | featureGroupAdmin | featureGroupClaimControl

// groupArgs are the arguments every call of a group begins with.
func groupArgs(more ...any) []any {
	return append([]any{"t1", "default", "s", 2, "g"}, more...)
}

// groupHead is how every group request of these tests goes on after its type.
const groupHead = `"tenant_id":"t1","namespace":"default","stream":"s","shard":2,"group":"g",`

var groupAnswers = map[string]string{
	"group_poll": `{"type":"group_records","records":[{"offset":18446744073709551615,"payload":"YQ==","attempts":4294967295,` +
		`"skipped_before":18446744073709551615,"publisher":"p","timestamp_micros":5,"new":1},{"offset":3,"payload":""}],"request_id":ID,"new":{}}`,
	"group_ack":          `{"type":"cache_ok","request_id":ID}`,
	"group_nack":         `{"type":"cache_ok","request_id":ID}`,
	"group_dead_letters": `{"type":"group_dead_letter_list","offsets":[3,18446744073709551615],"request_id":ID,"new":1}`,
	"group_discard":      `{"type":"cache_ok","request_id":ID}`,
	"group_redrive":      `{"type":"cache_ok","request_id":ID,"new":1}`,
}

func answerGroups(s *recorder.Stream, f raw.Frame) bool {
	answer, ok := groupAnswers[f.Type()]
	if ok {
		replying(answer)(s, f)
	}
	return ok
}

// claim polls and keeps the records as "r0" and "r1", for group_nack takes one.
func (l *lab) claim(t *testing.T) {
	t.Helper()
	if err := l.keep("polled", "c", "group_poll", groupArgs(), nil); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"r0", "r1"} {
		if err := l.keep(name, "polled", "__getitem__", []any{i}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A groupCall is a call of the client and the request it sends, without what
// all of them have.
type groupCall struct {
	method string
	more   []any
	kwargs map[string]any
	sent   string // with ID for the request's id
}

func object(name string) map[string]any { return map[string]any{"object": name} }

var groupCalls = []groupCall{
	{"group_poll", nil, nil, `"max_records":32,"wait_ms":5000,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"max_records": 0, "wait": 0}, `"max_records":0,"wait_ms":0,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"max_records": 5000, "wait": 1.25}, `"max_records":5000,"wait_ms":1250,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"wait": 0.0005}, `"max_records":32,"wait_ms":0,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"wait": -1}, `"max_records":32,"wait_ms":0,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"wait": 1e9}, `"max_records":32,"wait_ms":1000000000000,"request_id":ID}`},
	{"group_poll", nil, map[string]any{"consumer": "w"}, `"max_records":32,"wait_ms":5000,"request_id":ID,"consumer":"w"}`},
	{"group_poll", nil, map[string]any{"consumer": ""}, `"max_records":32,"wait_ms":5000,"request_id":ID,"consumer":""}`},
	{"group_poll", nil, map[string]any{"consumer": "w", "reclaim": true}, `"max_records":32,"wait_ms":5000,"request_id":ID,"consumer":"w","reclaim":true}`},
	// Without a name there is nobody to reclaim for.
	{"group_poll", nil, map[string]any{"reclaim": true}, `"max_records":32,"wait_ms":5000,"request_id":ID}`},
	{"group_ack", []any{7}, nil, `"offset":7,"request_id":ID}`},
	{"group_nack", []any{object("r0")}, nil, `"offset":18446744073709551615,"request_id":ID,"attempts":4294967295}`},
	// A record whose attempts the broker did not report names no delivery.
	{"group_nack", []any{object("r1")}, nil, `"offset":3,"request_id":ID}`},
	{"group_dead_letters", nil, nil, `"request_id":ID}`},
	{"group_discard", []any{uint64(1<<63 + 1)}, nil, `"offset":9223372036854775809,"request_id":ID}`},
	{"group_redrive", []any{7}, nil, `"offset":7,"request_id":ID}`},
}

// TestClientGroupRequests: every request of a group, byte for byte, the
// streams they take, and what the client makes of the answers.
func TestClientGroupRequests(t *testing.T) {
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: answerGroups})
	l.claim(t)
	for _, c := range groupCalls {
		if err := l.call(nil, "c", c.method, groupArgs(c.more...), c.kwargs); err != nil {
			t.Fatalf("%s %v: %v", c.method, c.kwargs, err)
		}
		sent := l.requests(c.method)
		last := sent[len(sent)-1]
		id, _ := raw.JSON(last).Uint("request_id")
		if want := fmt.Sprintf(`{"type":%q,`, c.method) + groupHead + strings.ReplaceAll(c.sent, "ID", fmt.Sprint(id)); last != want {
			t.Errorf("%s, not\n%s", last, want)
		}
	}
	t.Run("records", func(t *testing.T) {
		for name, want := range map[string][4]any{
			"r0": {uint64(1<<64 - 1), "a", uint64(1<<32 - 1), uint64(1<<64 - 1)},
			"r1": {uint64(3), "", uint64(0), uint64(0)},
		} {
			var offset, attempts, skipped uint64
			var payload struct {
				Bytes []byte `json:"bytes"`
			}
			for attribute, into := range map[string]any{"offset": &offset, "payload": &payload, "attempts": &attempts, "skipped_before": &skipped} {
				if err := l.attribute(into, name, attribute); err != nil {
					t.Fatal(err)
				}
			}
			if got := [4]any{offset, string(payload.Bytes), attempts, skipped}; got != want {
				t.Errorf("%s is %v, not %v", name, got, want)
			}
		}
	})
	t.Run("dead letters", func(t *testing.T) {
		var offsets []uint64
		if err := l.call(&offsets, "c", "group_dead_letters", groupArgs(), nil); err != nil || len(offsets) != 2 || offsets[0] != 3 || offsets[1] != 1<<64-1 {
			t.Errorf("%v, %v", offsets, err)
		}
	})
	t.Run("a stream for each request, ended after its answer", func(t *testing.T) {
		streams := make(map[int64][]string)
		until(t, "every stream is ended", func() error {
			clear(streams)
			for _, e := range l.server.Log() {
				if e.Stream >= 4*40 { // the first forty are there before any use
					streams[e.Stream] = append(streams[e.Stream], strings.TrimSpace(string(e.Kind)+" "+e.Frame.Type()))
				}
			}
			for id, log := range streams {
				if log[len(log)-1] != "fin" {
					return fmt.Errorf("stream %d: %v", id, log)
				}
			}
			return nil
		})
		if want := len(groupCalls) + 2; len(streams) != want {
			t.Errorf("%d streams for %d requests", len(streams), want)
		}
		for id, log := range streams {
			if len(log) != 5 || log[0] != "in auth" || log[1] != "out auth_ok" || !strings.HasPrefix(log[2], "in group_") || !strings.HasPrefix(log[3], "out ") {
				t.Errorf("stream %d: %v", id, log)
			}
		}
	})
	t.Run("what is not sent", func(t *testing.T) {
		before := len(l.server.Log())
		for _, c := range []groupCall{
			{"group_poll", nil, map[string]any{"max_records": -1}, "OverflowError"},
			{"group_poll", nil, map[string]any{"max_records": 1 << 40}, "OverflowError"},
			{"group_poll", nil, map[string]any{"wait": nil}, "TypeError"},
			{"group_ack", []any{-1}, nil, "OverflowError"},
			{"group_nack", []any{3}, nil, "TypeError"},
		} {
			if err := l.call(nil, "c", c.method, groupArgs(c.more...), c.kwargs); raised(err) != c.sent {
				t.Errorf("%s %v %v: %v, not %s", c.method, c.more, c.kwargs, err, c.sent)
			}
		}
		if log := l.server.Log(); len(log) != before {
			t.Errorf("sent all the same: %v", log[before:])
		}
	})
}

// TestClientGroupOfOlderBroker: what the client leaves out, and what it
// refuses itself, when a broker serves groups of the first release alone.
func TestClientGroupOfOlderBroker(t *testing.T) {
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog | featureConsumerGroup, Handle: answerGroups})
	l.claim(t)
	if err := l.call(nil, "c", "group_nack", groupArgs(object("r0")), nil); err != nil {
		t.Fatal(err)
	}
	if sent := l.requests("group_nack")[0]; strings.Contains(sent, "attempts") {
		t.Errorf("a delivery is named: %s", sent)
	}
	for _, c := range []groupCall{
		{"group_poll", nil, map[string]any{"consumer": "w"}, "this broker does not record which member holds a group's records"},
		{"group_dead_letters", nil, nil, "this broker does not serve dead letters"},
		{"group_discard", []any{1}, nil, "this broker does not serve dead letters"},
		{"group_redrive", []any{1}, nil, "this broker does not serve dead letters"},
	} {
		if err := l.call(nil, "c", c.method, groupArgs(c.more...), c.kwargs); raised(err) != "FelixError" || !strings.Contains(err.Error(), c.sent) {
			t.Errorf("%s: %v, not %q", c.method, err, c.sent)
		}
	}
}

// settles are one call of each method of a group.
var settles = []groupCall{
	{method: "group_poll"}, {method: "group_ack", more: []any{3}}, {method: "group_nack", more: []any{object("r1")}},
	{method: "group_dead_letters"}, {method: "group_discard", more: []any{3}}, {method: "group_redrive", more: []any{3}},
}

// TestClientGroupAnswers: refusals of group requests and how often the client
// sends the request: once more, at once, for what another broker might do and
// where it remembered who answered last.
func TestClientGroupAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		answer   func(*recorder.Stream, raw.Frame)
		class    string
		attempts int
	}{
		{"stale claim, retry", refusing("stale_claim", "retry"), "FelixError", 1},
		{"stale claim, fatal", refusing("stale_claim", "fatal"), "FelixError", 1},
		{"invalid", refusing("invalid_request", "fatal"), "FelixError", 1},
		{"forbidden", refusing("forbidden", "fatal"), "AuthError", 1},
		{"unauthenticated", refusing("unauthenticated", "fatal"), "AuthError", 1},
		{"not found", refusing("not_found", "retry_after"), "NotFoundError", 1},
		{"not found for good", refusing("not_found", "fatal"), "NotFoundError", 1},
		{"overloaded", refusing("overloaded", "retry_after"), "OverloadedError", 1},
		{"limit exceeded", refusing("limit_exceeded", "retry"), "FelixError", 2},
		{"storage, outcome unknown", refusing("storage", "outcome_unknown"), "OutcomeUnknownError", 1},
		{"quorum timeout", refusing("quorum_timeout", "outcome_unknown"), "OutcomeUnknownError", 1},
		{"storage, retry", refusing("storage", "retry"), "FelixError", 2},
		{"internal, retry", refusing("internal", "retry"), "FelixError", 2},
		{"shard unavailable", refusing("shard_unavailable", "retry"), "ShardUnavailableError", 2},
		{"draining", refusing("draining", "retry"), "ConnectionError", 2},
		{"not leader as an error", refusing("not_leader", "redirect"), "ShardUnavailableError", 2},
		{"not leader without an address", replying(`{"type":"not_leader","node_id":"b","generation":2}`), "ShardUnavailableError", 1},
		{"no code", replying(`{"type":"error","message":"x"}`), "FelixError", 1},
		{"unsupported", replying(`{"type":"unsupported","request_type":"x","request_id":ID}`), "FelixError", 1},
		{"a foreign request id", replying(`{"type":"cache_ok","request_id":99}`), "FelixError", 1},
		{"another answer", replying(`{"type":"counter_value","request_id":ID}`), "FelixError", 1},
		{"FIN", func(s *recorder.Stream, _ raw.Frame) { s.FIN() }, "FelixError", 1},
		{"RESET", func(s *recorder.Stream, _ raw.Frame) { s.Reset(1) }, "FelixError", 1},
		{"close", func(s *recorder.Stream, _ raw.Frame) { s.Conn.Close(0, "broker shutting down") }, "ConnectionError", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			script := &recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: answerGroups}
			l := newLab(t, script)
			first := &sequence{kind: "group_poll", answers: []func(*recorder.Stream, raw.Frame){tc.answer}}
			l.server.SetScript(&recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: first.handle})
			if err := l.call(nil, "c", "group_poll", groupArgs(), nil); raised(err) != tc.class || first.count() != 1 {
				t.Errorf("the first request: %v after %d attempts, want %s after 1", err, first.count(), tc.class)
			}
			l.server.SetScript(script)
			for _, c := range settles {
				l.claim(t)
				q := &sequence{kind: c.method, answers: []func(*recorder.Stream, raw.Frame){tc.answer}}
				l.server.SetScript(&recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: q.handle})
				if err := l.call(nil, "c", c.method, groupArgs(c.more...), nil); raised(err) != tc.class || q.count() != tc.attempts {
					t.Errorf("%s: %v after %d attempts, want %s after %d", c.method, err, q.count(), tc.class, tc.attempts)
				}
				l.server.SetScript(script)
			}
		})
	}
}

// refusing answers with an error of this code and class.
func refusing(code, class string) func(*recorder.Stream, raw.Frame) {
	return replying(fmt.Sprintf(`{"type":"error","message":"x","code":%q,"retry":%q}`, code, class))
}

// TestClientGroupRedirects: the client follows not_leader, remembers the owner
// of a shard for every group and every request, and goes back to the broker
// it knows when the owner refuses or is gone.
func TestClientGroupRedirects(t *testing.T) {
	t.Parallel()
	here := &sequence{kind: "group_poll"}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: func(s *recorder.Stream, f raw.Frame) bool {
		return here.handle(s, f) || answerGroups(s, f)
	}})
	there := &sequence{kind: "group_poll"}
	owner := startRecorder(t, recorder.Options{PKI: l.server.PKI(), Script: &recorder.Script{Flags: recorder.AllFlags, Features: withGroups,
		Handle: func(s *recorder.Stream, f raw.Frame) bool { return there.handle(s, f) || answerGroups(s, f) }}})
	records := replying(`{"type":"group_records","records":[],"request_id":ID}`)
	moved := replying(fmt.Sprintf(`{"type":"not_leader","node_id":"b","addr":%q,"generation":2}`, owner.Addr()))
	poll := func(group string, atHere, atThere int) {
		t.Helper()
		if err := l.call(nil, "c", "group_poll", []any{"t1", "default", "s", 2, group}, nil); err != nil {
			t.Fatal(err)
		}
		if here.count() != atHere || there.count() != atThere {
			t.Fatalf("%d polls here and %d there, not %d and %d", here.count(), there.count(), atHere, atThere)
		}
	}
	here.restart(moved)
	there.restart(records)
	poll("g", 1, 1)
	poll("g", 1, 2)
	poll("another", 1, 3)
	if err := l.call(nil, "c", "group_ack", groupArgs(1), nil); err != nil || len(l.requests("group_ack")) != 0 {
		t.Errorf("an ack goes elsewhere than its poll: %v", err)
	}
	here.restart(records)
	there.restart(refusing("shard_unavailable", "retry"))
	poll("g", 1, 1)
	poll("g", 2, 1)

	here.restart(moved, records)
	there.restart(records)
	poll("g", 1, 1)
	owner.Close()
	// The first one finds out that nobody is there.
	if err := l.call(nil, "c", "group_poll", groupArgs(), nil); err != nil && raised(err) != "ConnectionError" {
		t.Fatal(err)
	}
	poll("g", 2, 1)
}

// TestClientPollOfKilledBroker: a poll whose broker is gone is raised and not
// sent again; the next call finds the broker by itself.
func TestClientPollOfKilledBroker(t *testing.T) {
	t.Parallel()
	waits := &sequence{kind: "group_poll", answers: []func(*recorder.Stream, raw.Frame){func(*recorder.Stream, raw.Frame) {}}}
	script := &recorder.Script{Flags: recorder.AllFlags, Features: withGroups, Handle: waits.handle}
	l := newLab(t, script)
	poll := l.begin("c", "group_poll", groupArgs(), map[string]any{"wait": 20})
	l.wait(t, "the poll", func(e recorder.Entry) bool { return e.Frame.Type() == "group_poll" })
	l.server.Kill()
	startRecorder(t, recorder.Options{Addr: l.server.Addr(), PKI: l.server.PKI(), Script: script})
	waits.restart(replying(`{"type":"group_records","records":[],"request_id":ID}`))
	if err := poll.result(nil); raised(err) != "ConnectionError" || waits.count() != 0 {
		t.Fatalf("%v; sent again %d times", err, waits.count())
	}
	if err := l.call(nil, "c", "group_poll", groupArgs(), nil); err != nil || waits.count() != 1 {
		t.Fatalf("%v after %d polls", err, waits.count())
	}
}
