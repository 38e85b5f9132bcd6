package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// inMemory are the features a node in memory advertises and the published
// client makes something of.
const inMemory = featureCacheDelete | featureStreamShards | featureErrorCodes | featureUnsupported

// A lab is the published client in front of a recorder: what the client
// really does, and how it takes answers right and wrong.
type lab struct {
	*driver
	server *recorder.Server
	script *recorder.Script
	ca     string
}

// newLab starts a recorder with a script and the client, connected as "c".
func newLab(t *testing.T, script *recorder.Script) *lab {
	t.Helper()
	l := &lab{driver: startDriver(t), script: script}
	l.server = startRecorder(t, recorder.Options{Script: script})
	l.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(l.ca, l.server.PKI().CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.connect("c", l.server.Addr(), l.ca, nil); err != nil {
		t.Fatalf("connect: %v", err)
	}
	return l
}

func startRecorder(t *testing.T, o recorder.Options) *recorder.Server {
	t.Helper()
	s, err := recorder.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// publish publishes one record to stream "s".
func (l *lab) publish(kwargs map[string]any) error {
	return l.call(nil, "c", "publish", []any{"t1", "default", "s", pyBytes("x")}, kwargs)
}

// subscribe keeps a subscription to stream "s" as "sub".
func (l *lab) subscribe(kwargs map[string]any) error {
	return l.keep("sub", "c", "subscribe", []any{"t1", "default", "s"}, kwargs)
}

// wait waits for an entry of the log.
func (l *lab) wait(t *testing.T, what string, match func(recorder.Entry) bool) recorder.Entry {
	t.Helper()
	return l.waitFrom(t, 0, what, match)
}

// waitFrom waits for an entry of the log from the given place on.
func (l *lab) waitFrom(t *testing.T, from int, what string, match func(recorder.Entry) bool) recorder.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := l.server.WaitLog(ctx, from, match)
	if err != nil {
		t.Fatalf("%s: never seen", what)
	}
	return e
}

// requests are the JSON messages of a type received so far.
func (l *lab) requests(kind string) []string {
	var texts []string
	for _, e := range l.server.Frames(func(e recorder.Entry) bool { return e.Frame.Type() == kind }) {
		texts = append(texts, string(e.Frame.Payload))
	}
	return texts
}

// A sequence answers the requests of one type with one function after the
// other, and the last one from then on.
type sequence struct {
	kind    string
	answers []func(*recorder.Stream, raw.Frame)

	mu   sync.Mutex
	seen int
}

func (q *sequence) handle(s *recorder.Stream, f raw.Frame) bool {
	if kindOf(f) != q.kind {
		return false
	}
	q.mu.Lock()
	answer := q.answers[min(q.seen, len(q.answers)-1)]
	q.seen++
	q.mu.Unlock()
	answer(s, f)
	return true
}

func (q *sequence) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seen
}

// restart makes the next request the first again.
func (q *sequence) restart(answers ...func(*recorder.Stream, raw.Frame)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers, q.seen = answers, 0
}

// kindOf is the type of a JSON frame and "binary publish" for a binary one.
func kindOf(f raw.Frame) string {
	if f.Flags&raw.FlagPublishBatch != 0 {
		return "binary publish"
	}
	return f.Type()
}

// say answers with a JSON message and ends the stream.
func say(message string) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, _ raw.Frame) {
		s.Send(raw.JSON(message))
		s.FIN()
	}
}

// ackWith answers a binary publish with an ack under its request id.
func ackWith(a raw.Ack) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, f raw.Frame) {
		p, err := raw.ParsePublish(f)
		if err != nil {
			panic("the client's publish does not parse: " + err.Error())
		}
		a.RequestID = p.RequestID
		s.Send(a.Frame())
	}
}

// subscribeOK answers subscribe with its extra members, opens the event
// stream and hands it to then.
func subscribeOK(id uint64, extra string, then func(*recorder.Stream)) func(*recorder.Stream, raw.Frame) {
	return func(s *recorder.Stream, _ raw.Frame) {
		events, err := s.Conn.OpenEvents(id)
		if err != nil {
			return // the connection is gone, and the client knows
		}
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"subscribed","subscription_id":%d%s}`, id, extra)))
		s.FIN()
		if then != nil {
			then(events)
		}
	}
}

// events is a shared event batch that carries offsets.
func events(base uint64, records ...string) raw.Frame {
	e := raw.Events{Flags: raw.FlagEventBatchShared | raw.FlagEventOffsets, BaseOffset: base}
	for _, r := range records {
		e.Records = append(e.Records, []byte(r))
	}
	return e.Frame()
}

// raised is the exception class of a call's failure; the empty string is a
// call that did not fail.
func raised(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*clientError); ok {
		return e.Class
	}
	return err.Error()
}

// memberNames are the members of a JSON frame, sorted.
func memberNames(f raw.Frame) []string {
	var names []string
	for name := range f.Object() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
