package session_test

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// moved reads the last frame of a watch and the clean end behind it.
func (w *watchLane) moved() *wire.ShardMoved {
	w.t.Helper()
	m, is := w.message().(*wire.ShardMoved)
	if !is || m.SubscriptionID != w.started.SubscriptionID || m.NodeID.Set || m.Addr.Set || m.Generation != 0 {
		w.t.Fatalf("last frame %+v of watch %d", m, w.started.SubscriptionID)
	}
	if _, _, err := w.in.Next(); !errors.Is(err, io.EOF) {
		w.t.Fatalf("after the last frame: %v", err)
	}
	return m
}

// stopping stops the node while the test reads on: what is unread when the
// connection closes is gone. The result waits for the end.
func stopping(n *felixtest.Node) (wait func()) {
	var stop sync.WaitGroup
	stop.Go(n.Stop)
	return stop.Wait
}

// A node that stops tells its watches, after what they have queued, that their
// shard is not served here any more and where to go on; whoever goes on there
// after the restart misses nothing and sees nothing twice (wire 11).
func TestStopTellsWatches(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	k := dial(t, n).keeper()
	k.put("a", "0")
	k.put("b", "0")
	p := dial(t, n)
	all := p.watch(&wire.CacheWatch{Prefix: some("")})
	key := p.watch(&wire.CacheWatch{Key: some("a")})
	quiet := p.watch(&wire.CacheWatch{Key: some("nobody")})
	history := p.watch(&wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some[uint64](1)})
	state := p.watch(&wire.CacheWatch{Prefix: some("a"), Retained: true})
	k.put("a", "1")
	k.put("b", "1")
	k.del("b")
	wait := stopping(n)
	all.expect("a=1", "b=1", "b-")
	key.expect("a=1")
	history.expect("b=0", "a=1", "b=1", "b-")
	state.expect("a=0", "a=1")
	// Those that saw little stand where those stand that saw all: compaction
	// then takes nothing from under them.
	for name, w := range map[string]*watchLane{"all": all, "key": key, "quiet": quiet, "history": history, "state": state} {
		if m := w.moved(); m.ResumeFrom != wire.Some[uint64](5) {
			t.Errorf("%s is to go on at %+v, want 5", name, m.ResumeFrom)
		}
	}
	wait()
	n.Restart()
	p = dial(t, n)
	again := p.watch(&wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some[uint64](5)})
	p.keeper().put("c", "2")
	again.expect("c=2")
}

// A watch that a stop finds without a change goes on where it began.
func TestStopTellsWatchesThatSawNothing(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	k := p.keeper()
	empty := p.watch(&wire.CacheWatch{Cache: "other", Prefix: some(""), Retained: true})
	for range 3 {
		k.put("a", "0")
	}
	late := p.watch(&wire.CacheWatch{Prefix: some("")})
	defer stopping(n)()
	for name, tc := range map[string]struct {
		w    *watchLane
		want uint64
	}{"empty": {empty, 0}, "late": {late, 3}} {
		if m := tc.w.moved(); m.ResumeFrom != wire.Some(tc.want) {
			t.Errorf("%s is to go on at %+v, want %d", name, m.ResumeFrom, tc.want)
		}
	}
}

// The frame is only for those who read it: the watch of another ends, as
// before, with the connection, and not cleanly.
func TestStopLeavesOtherWatchesOpen(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	legacy := modern()
	legacy.Features &^= wire.FeatureShardMoved
	w := dial(t, n).watchOffering(legacy, n.Token(), &wire.CacheWatch{Prefix: some("")})
	dial(t, n).keeper().put("k", "last")
	defer stopping(n)()
	w.expect("k=last")
	var closed *transport.CloseError
	if _, _, err := w.in.Next(); !errors.As(err, &closed) || closed.Code != 0 || closed.Reason != "broker shutting down" {
		t.Fatalf("the watch of a node that stopped: %v", err)
	}
}
