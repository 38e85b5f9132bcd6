package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// withLog are the features of a node with storage that the published client
// makes something of.
const withLog = inMemory | featureCacheWatch | featureCacheWatchRetained | featureCounters | featureAtomicCommit

// watchOK answers cache_watch with its members, opens the event stream and
// hands it to then.
func watchOK(members string, then func(*recorder.Stream)) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, _ raw.Frame) {
		events, err := s.Conn.OpenEvents(7)
		if err != nil {
			return // the connection is gone, and the client knows
		}
		s.Send(raw.JSON(`{"type":"cache_watch_started","subscription_id":7,` + members + `}`))
		s.FIN()
		if then != nil {
			then(events)
		}
	}
}

const started = `"resume_offset":20,"resnapshot":false`

// watch keeps a watch of cache "c" as "w".
func (l *lab) watch(kind, text string, kwargs map[string]any) error {
	return l.keep("w", "c", "watch_cache", []any{"t1", "default", "c", map[string]any{"filter": []string{kind, text}}}, kwargs)
}

// TestClientWatchRequests: cache_watch, byte for byte, and what the client
// makes of the answer.
func TestClientWatchRequests(t *testing.T) {
	q := &sequence{kind: "cache_watch", answers: []func(*recorder.Stream, raw.Frame){watchOK(started, nil)}}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: q.handle})
	const head = `{"type":"cache_watch","tenant_id":"t1","namespace":"default","cache":"c",`
	for _, tc := range []struct {
		kind, text string
		kwargs     map[string]any
		want       string
	}{
		{"key", "k", nil, `"key":"k"}`},
		{"key", "k", map[string]any{"start": 0}, `"key":"k","from_offset":0}`},
		{"prefix", "", nil, `"prefix":""}`},
		{"prefix", "a/", map[string]any{"start": 1<<53 + 1}, `"prefix":"a/","from_offset":9007199254740993}`},
		{"prefix", "", map[string]any{"retained": true}, `"prefix":"","retained":true}`},
	} {
		if err := l.watch(tc.kind, tc.text, tc.kwargs); err != nil {
			t.Fatalf("%v: %v", tc, err)
		}
		sent := l.requests("cache_watch")
		if got := sent[len(sent)-1]; got != head+tc.want {
			t.Errorf("%s, not %s", got, head+tc.want)
		}
	}
	for name, tc := range map[string]struct {
		members   string
		resume    uint64
		snapshot  bool
		retained  any
		sendsThis bool
	}{
		"plain":                {`"resume_offset":18446744073709551615,"resnapshot":false`, 1<<64 - 1, false, nil, true},
		"without resnapshot":   {`"resume_offset":5`, 5, false, nil, true},
		"snapshot":             {`"resume_offset":5,"resnapshot":true`, 5, true, nil, true},
		"retained":             {`"resume_offset":5,"resnapshot":false,"retained_count":3`, 5, false, 3.0, true},
		"members of its own":   {started + `,"new":{"a":1}`, 20, false, nil, true},
		"unasked retained (0)": {started + `,"retained_count":0`, 20, false, 0.0, true},
	} {
		q.restart(watchOK(tc.members, nil))
		if err := l.watch("key", "k", nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var resume uint64
		var snapshot bool
		var retained any
		for attribute, into := range map[string]any{"resume_offset": &resume, "resnapshot": &snapshot, "retained_count": &retained} {
			if err := l.attribute(into, "w", attribute); err != nil {
				t.Fatal(err)
			}
		}
		if resume != tc.resume || snapshot != tc.snapshot || retained != tc.retained {
			t.Errorf("%s: %d, %v, %v", name, resume, snapshot, retained)
		}
	}
}

// TestClientWatchAnswers: refusals of cache_watch, and whether the client
// tries again by itself.
func TestClientWatchAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, message, class string
		attempts             int
	}{
		{"in future", `{"type":"subscribe_cursor_error","reason":"in_future","requested":99,"available":17}`, "CursorError", 1},
		{"too old", `{"type":"subscribe_cursor_error","reason":"too_old","requested":3,"available":17}`, "CursorError", 1},
		{"forbidden", `{"type":"error","message":"forbidden","code":"forbidden","retry":"fatal"}`, "AuthError", 1},
		{"invalid", `{"type":"error","message":"x","code":"invalid_request","retry":"fatal"}`, "FelixError", 1},
		{"not found", `{"type":"error","message":"x","code":"not_found","retry":"retry_after"}`, "NotFoundError", 1},
		{"shard unavailable", `{"type":"error","message":"x","code":"shard_unavailable","retry":"retry"}`, "ShardUnavailableError", 1},
		{"no code", `{"type":"error","message":"x"}`, "FelixError", 1},
		{"unsupported", `{"type":"unsupported","request_type":"cache_watch"}`, "FelixError", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := &sequence{kind: "cache_watch", answers: []func(*recorder.Stream, raw.Frame){say(tc.message)}}
			l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: q.handle})
			if err := l.watch("key", "k", map[string]any{"start": 3}); raised(err) != tc.class || q.count() != tc.attempts {
				t.Errorf("%v after %d attempts, want %s after %d", err, q.count(), tc.class, tc.attempts)
			}
		})
	}
}

// TestClientWatchEnds: each way the event stream of a watch can end, and what
// becomes of the watch. It never resumes by itself but where its shard moved.
func TestClientWatchEnds(t *testing.T) {
	t.Parallel()
	change := raw.JSON(`{"type":"cache_event","key":"k","value":"dg==","offset":20,"expires_at_millis":0}`)
	sending := func(end func(*recorder.Stream), messages ...string) func(*recorder.Stream) {
		return func(e *recorder.Stream) {
			frames := []raw.Frame{change}
			for _, m := range messages {
				frames = append(frames, raw.JSON(m))
			}
			e.Send(frames...)
			// A reset overtakes what was sent before it; the test reads first.
			go func() { time.Sleep(200 * time.Millisecond); end(e) }()
		}
	}
	fin := (*recorder.Stream).FIN
	for _, tc := range []struct {
		name string
		then func(*recorder.Stream)
		want string // what comes after the change, by nextOf
		// again is what the next cache_watch of the client says, "" if there is none.
		again string
	}{
		{"FIN", sending(fin), "None", ""},
		{"RESET", sending(func(e *recorder.Stream) { e.Reset(1) }), "None", ""},
		{"close", sending(func(e *recorder.Stream) { e.Conn.Close(0, "broker shutting down") }), "None", ""},
		{"lagged", sending(fin, `{"type":"cache_watch_lagged","resume_from":31}`), "CacheWatchLagged 31, None", ""},
		{"moved", sending(fin, `{"type":"shard_moved","subscription_id":7,"resume_from":31,"generation":3}`), "CacheWatchShardMoved 31", `"from_offset":31}`},
		{"moved without a place", sending(fin, `{"type":"shard_moved","subscription_id":7,"generation":3}`), "CacheWatchShardMoved 0", `"from_offset":21}`},
		{"moved, as a stop of ours says it", sending(fin, `{"type":"shard_moved","subscription_id":7,"resume_from":31,"generation":0}`), "CacheWatchShardMoved 31", `"from_offset":31}`},
		{"error", sending(fin, `{"type":"error","message":"token expired","code":"unauthenticated","retry":"fatal"}`), "None", ""},
		{"unknown message", sending(fin, `{"type":"nonesuch"}`), "None", ""},
		{"expired, of ours", sending(fin, `{"type":"cache_event","key":"k","offset":22,"expires_at_millis":0,"expired":true}`), "CacheChange 0, None", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := &sequence{kind: "cache_watch", answers: []func(*recorder.Stream, raw.Frame){watchOK(started, tc.then), watchOK(started, nil)}}
			l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: q.handle})
			if err := l.watch("key", "k", nil); err != nil {
				t.Fatal(err)
			}
			if c, err := l.recv("w", patience.Seconds()); err != nil || c == nil || c.Class != "CacheChange" || c.Offset != 20 {
				t.Fatalf("%+v, %v", c, err)
			}
			var got []string
			for range strings.Count(tc.want, ",") + 1 {
				got = append(got, l.nextOf(t))
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
			if tc.again == "" {
				var closed bool
				if err := l.attribute(&closed, "w", "closed"); err != nil || closed || q.count() != 1 {
					t.Errorf("closed: %v, %v; %d watches", closed, err, q.count())
				}
				return
			}
			until(t, "the watch of the new owner", func() error {
				// It follows when it is asked for the next change.
				if c, err := l.recv("w", 0.1); c != nil || err != nil {
					return fmt.Errorf("%+v, %v", c, err)
				}
				if sent := l.requests("cache_watch"); len(sent) < 2 || !strings.HasSuffix(sent[1], tc.again) { // more, where it lost patience
					return fmt.Errorf("asked for %v", sent)
				}
				return nil
			})
		})
	}
}

// nextOf is the next item of the watch in a word, or the class of what it
// raises.
func (l *lab) nextOf(t *testing.T) string {
	t.Helper()
	c, err := l.recv("w", 3)
	switch {
	case err != nil:
		return raised(err)
	case c == nil:
		return "None"
	default:
		return fmt.Sprintf("%s %d", c.Class, c.ResumeFrom)
	}
}

// TestClientMovedWatchWaits: told that its shard moved, a watch is carried
// over the absence of the only broker there is.
func TestClientMovedWatchWaits(t *testing.T) {
	t.Parallel()
	q := &sequence{kind: "cache_watch", answers: []func(*recorder.Stream, raw.Frame){watchOK(started, func(e *recorder.Stream) {
		e.Send(raw.JSON(`{"type":"shard_moved","subscription_id":7,"resume_from":31,"generation":3}`))
		e.FIN()
	})}}
	script := &recorder.Script{Flags: recorder.AllFlags, Features: withLog, Handle: q.handle}
	l := newLab(t, script)
	if err := l.watch("key", "k", nil); err != nil {
		t.Fatal(err)
	}
	if got := l.nextOf(t); got != "CacheWatchShardMoved 31" {
		t.Fatalf("got %s", got)
	}
	l.server.Close()
	next := l.begin("w", "recv", nil, map[string]any{"timeout": patience.Seconds()})
	time.Sleep(time.Second) // the absence
	q.restart(watchOK(started, func(e *recorder.Stream) {
		e.Send(raw.JSON(`{"type":"cache_event","key":"k","value":"dg==","offset":31,"expires_at_millis":0}`))
	}))
	startRecorder(t, recorder.Options{Addr: l.server.Addr(), PKI: l.server.PKI(), Script: script})
	var c *pyChange
	if err := next.result(&c); err != nil || c == nil || c.Class != "CacheChange" || c.Offset != 31 {
		t.Fatalf("%+v, %v", c, err)
	}
}
