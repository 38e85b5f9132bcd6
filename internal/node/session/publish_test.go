package session_test

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// Every acked publish of a pipeline is answered once, in request order.
func TestPipelinedAcksKeepRequestOrder(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	var out []byte
	const count = 1000
	for i := range uint64(count) {
		out = p.publish(i, fmt.Sprintf("s%d", i%7), []byte("x")).Append(out)
	}
	l.send(out)
	for i := range uint64(count) {
		if a := l.ack(); a.Failed || a.RequestID != i || a.HasOffset {
			t.Fatalf("ack %d: %+v", i, a)
		}
	}
}

// One refused publish in a pipeline fails alone, with its own id and code;
// those around it are acknowledged.
func TestOneRefusedPublishDoesNotDisturbOthers(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateStream("good", 1)
	n.CreateStream("locked", 1)
	tenant, ns := n.Tenant(), n.Namespace()
	token := n.Token("stream.publish:stream:"+tenant+"/"+ns+"/good", "stream.publish:stream:"+tenant+"/"+ns+"/missing")
	p := dial(t, n)
	bad := map[string]struct {
		frame func(id uint64) []byte
		code  wire.Code
	}{
		"unknown stream": {func(id uint64) []byte { return p.publish(id, "missing", []byte("x")).Append(nil) }, wire.CodeNotFound},
		"forbidden":      {func(id uint64) []byte { return p.publish(id, "locked", []byte("x")).Append(nil) }, wire.CodeForbidden},
		"foreign tenant": {func(id uint64) []byte {
			m := p.publish(id, "good", []byte("x"))
			m.Tenant = []byte("other")
			return m.Append(nil)
		}, wire.CodeForbidden},
		"malformed body": {func(id uint64) []byte {
			f := p.publish(id, "good", []byte("x")).Append(nil)
			f[len(f)-2] = 0xff // the record's length
			return f
		}, wire.CodeInvalidRequest},
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			l := p.login(modern(), token)
			const count, at = 256, 101
			var out []byte
			for i := range uint64(count) {
				if i == at {
					out = append(out, b.frame(i)...)
					continue
				}
				out = p.publish(i, "good", []byte("x")).Append(out)
			}
			l.send(out)
			for i := range uint64(count) {
				a := l.ack()
				if a.RequestID != i || a.Failed != (i == at) {
					t.Fatalf("answer %d: %+v", i, a)
				}
				if a.Failed && a.Code != b.code {
					t.Fatalf("refused with %v, want %v", a.Code, b.code)
				}
			}
		})
	}
}

// Empty payloads are records like others, wherever they stand in a batch, and
// an empty batch is acknowledged and appends nothing.
func TestEmptyPayloadsAreRecords(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	l := p.login(modern(), n.Token())
	batches := [][][]byte{{{}}, {{}, []byte("a")}, {[]byte("a"), {}, []byte("b")}, {[]byte("a"), {}}, {}, {[]byte("last")}}
	want := ""
	for i, b := range batches {
		l.send(p.publish(uint64(i), "s", b...).Append(nil))
		if a := l.ack(); a.Failed {
			t.Fatalf("batch %d: %+v", i, a)
		}
		for _, r := range b {
			want += string(r) + "|"
		}
	}
	got, next := "", sub.said.LiveOffset.Value
	for len(got) < len(want) {
		b := sub.batch()
		if b.BaseOffset != next {
			t.Fatalf("batch at %d, want %d", b.BaseOffset, next)
		}
		for _, e := range b.All() {
			got += string(e.Payload) + "|"
			next++
		}
	}
	if got != want {
		t.Fatalf("received %q, want %q", got, want)
	}
}

// JSON publishes are answered in JSON, and one without an id is refused
// without ending its stream.
func TestJSONPublish(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	l := p.login(modern(), n.Token())
	l.say(&wire.JSONPublish{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", Payload: []byte("no id")})
	if e, ok := l.message().(*wire.Error); !ok || e.Code.Value != "invalid_request" || e.Message != "missing request_id for acked publish" {
		t.Fatalf("publish without an id: %+v", e)
	}
	l.say(&wire.JSONPublish{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", Payload: []byte("one"), RequestID: wire.Some[uint64](1<<64 - 1)})
	if ok := l.message().(*wire.PublishOK); ok.RequestID != 1<<64-1 || ok.Offset.Set {
		t.Fatalf("publish: %+v", ok)
	}
	l.say(&wire.JSONPublishBatch{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", Payloads: wire.AppendBlock(nil, []byte("two"), []byte("three")), RequestID: wire.Some[uint64](2)})
	if ok := l.message().(*wire.PublishOK); ok.RequestID != 2 {
		t.Fatalf("publish batch: %+v", ok)
	}
	got := ""
	for len(got) < len("one two three ") {
		b := sub.batch()
		for _, e := range b.All() {
			got += string(e.Payload) + " "
		}
	}
	if got != "one two three " {
		t.Fatalf("received %q", got)
	}
}
