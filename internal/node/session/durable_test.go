package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/wire"
)

// A durable stream's acks carry the offset of their first record, dense and in
// request order, and what was acknowledged is there after a restart, at its
// offsets, with its times.
func TestDurablePublishSurvivesARestart(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	var out []byte
	const count = 300
	for i := range uint64(count) {
		out = p.publish(i, "s", fmt.Appendf(nil, "a%d", i), fmt.Appendf(nil, "b%d", i)).Append(out)
	}
	l.send(out)
	for i := range uint64(count) {
		if a := l.ack(); a.Failed || a.RequestID != i || !a.HasOffset || a.Offset != 2*i {
			t.Fatalf("ack %d: %+v", i, a)
		}
	}
	read := func(when string) {
		t.Helper()
		sub := dial(t, n).subscribe(modern(), &wire.Subscribe{Stream: "s", Start: wire.Some(wire.Start{Kind: wire.StartEarliest})})
		if sub.said.StartOffset.Value != 0 || sub.said.LiveOffset.Value != 2*count {
			t.Fatalf("%s: subscribed %+v", when, sub.said)
		}
		next, last := uint64(0), uint64(0)
		for next < 2*count {
			b := sub.batch()
			for i, e := range b.All() {
				want := fmt.Sprintf("%c%d", "ab"[next%2], next/2)
				if b.BaseOffset+uint64(i) != next || string(e.Payload) != want || e.TimestampMicros == 0 || e.TimestampMicros < last {
					t.Fatalf("%s: record %d is %q at %d, time %d after %d", when, next, e.Payload, b.BaseOffset+uint64(i), e.TimestampMicros, last)
				}
				last = e.TimestampMicros
				next++
			}
		}
	}
	read("before")
	n.Restart()
	read("after")
	// And it goes on where it was.
	l = dial(t, n).login(modern(), n.Token())
	l.send(p.publish(1, "s", []byte("again")).Append(nil))
	if a := l.ack(); a.Failed || a.Offset != 2*count {
		t.Fatalf("publish after the restart: %+v", a)
	}
}

// A client that does not read offsets gets the plain ack, and a stream in
// memory never has an offset.
func TestAckOffsetsAreNegotiated(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	n.CreateStreamWith("memory", broker.StreamOptions{})
	p := dial(t, n)
	plain := modern()
	plain.Flags &^= wire.FlagAckOffset
	l := p.login(plain, n.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed || a.HasOffset {
		t.Fatalf("ack to a client without offsets: %+v", a)
	}
	l.say(&wire.JSONPublish{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", RequestID: wire.Some[uint64](2)})
	if ok := l.message().(*wire.PublishOK); ok.RequestID != 2 || ok.Offset.Set {
		t.Fatalf("publish_ok to a client without offsets: %+v", ok)
	}
	l = p.login(modern(), n.Token())
	l.say(&wire.JSONPublish{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", RequestID: wire.Some[uint64](3)})
	if ok := l.message().(*wire.PublishOK); ok.Offset != wire.Some[uint64](2) {
		t.Fatalf("publish_ok of a durable stream: %+v", ok)
	}
	onCommit := modern()
	onCommit.Features |= wire.FeatureAckOnCommit
	l = p.login(onCommit, n.Token())
	l.send(p.publish(4, "memory", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed || a.HasOffset {
		t.Fatalf("ack of a stream in memory: %+v", a)
	}
}

// A node that stops answers the publishes it has taken before it closes their
// connections, however long their commit takes within its grace.
func TestStopWaitsForCommits(t *testing.T) {
	files := fstest.NewFaults(fs.OS())
	n := felixtest.Start(t, felixtest.WithFileSystem(files), felixtest.WithSetting("storage-journal-bytes", "0"))
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	l.send(p.publish(0, "s", []byte("first")).Append(nil))
	if a := l.ack(); a.Failed {
		t.Fatalf("first publish: %+v", a)
	}
	gate := files.Block(fstest.OpSync, "_s_")
	t.Cleanup(gate.Open)
	l.send(p.publish(1, "s", []byte("taken")).Append(nil))
	<-gate.Arrived()
	url := n.AdminURL() + "/ready"
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	waitFor(t, "the stop to begin", func() bool { status, _ := probeURL(t, url); return status == 503 })
	select {
	case <-p.conn.Context().Done():
		t.Fatal("closed before the answer")
	case <-time.After(300 * time.Millisecond): // several looks of the drain
	}
	gate.Open()
	if a := l.ack(); a.Failed || a.RequestID != 1 || a.Offset != 1 {
		t.Fatalf("publish taken before the stop: %+v", a)
	}
	<-stopped
}
