package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/wire"
)

// A watchLane is one watch as a raw client sees it.
type watchLane struct {
	*eventLane
	started *wire.CacheWatchStarted
}

func (p *peer) askWatch(o wire.Offer, token string, m *wire.CacheWatch) (*lane, wire.Message) {
	p.t.Helper()
	l := p.login(o, token)
	m.Tenant, m.Namespace = p.node.Tenant(), p.node.Namespace()
	if m.Cache == "" {
		m.Cache = "c"
	}
	l.say(m)
	return l, l.message()
}

// watch opens a watch and reads its hello.
func (p *peer) watch(m *wire.CacheWatch) *watchLane {
	p.t.Helper()
	return p.watchAs(p.node.Token(), m)
}

func (p *peer) watchAs(token string, m *wire.CacheWatch) *watchLane {
	p.t.Helper()
	return p.watchOffering(modern(), token, m)
}

func (p *peer) watchOffering(o wire.Offer, token string, m *wire.CacheWatch) *watchLane {
	p.t.Helper()
	l, answer := p.askWatch(o, token, m)
	started, is := answer.(*wire.CacheWatchStarted)
	if !is {
		p.t.Fatalf("cache_watch: %#v", answer)
	}
	l.ended()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	st, err := p.conn.AcceptUniStream(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &watchLane{&eventLane{t: p.t, st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload)}, started}
	if hello, is := w.message().(*wire.EventStreamHello); !is || hello.SubscriptionID != started.SubscriptionID {
		p.t.Fatalf("first frame of a watch: %+v", hello)
	}
	return w
}

func (w *watchLane) message() wire.Message {
	w.t.Helper()
	h, payload := w.frame()
	m, err := wire.ParseMessage(payload)
	if err != nil || h.Flags != 0 {
		w.t.Fatalf("frame of a watch: %#x %v", h.Flags, err)
	}
	return m
}

func (w *watchLane) event() *wire.CacheEvent {
	w.t.Helper()
	e, is := w.message().(*wire.CacheEvent)
	if !is {
		w.t.Fatalf("want a change, got %#v", e)
	}
	return e
}

// expect reads changes written as key=value, key- (deleted) and key! (expired).
func (w *watchLane) expect(want ...string) (last uint64) {
	w.t.Helper()
	for i, text := range want {
		e := w.event()
		got := string(e.Key) + "-"
		switch {
		case e.Value.Set:
			got = string(e.Key) + "=" + string(e.Value.Value)
		case e.Expired:
			got = string(e.Key) + "!"
		}
		if got != text || i > 0 && e.Offset <= last {
			w.t.Fatalf("change %d is %s at %d after %d, want %s", i, got, e.Offset, last, text)
		}
		last = e.Offset
	}
	return last
}

// A keeper writes a cache.
type keeper struct {
	*lane
	n  testNode
	id uint64
}

func (p *peer) keeper() *keeper {
	p.t.Helper()
	return &keeper{lane: p.login(modern(), p.node.Token()), n: p.node}
}

func (k *keeper) put(key, value string) {
	k.t.Helper()
	k.id++
	k.say(&wire.CachePut{Tenant: k.n.Tenant(), Namespace: k.n.Namespace(), Cache: "c", Key: []byte(key), Value: []byte(value), RequestID: wire.Some(k.id)})
	if ok, is := k.message().(*wire.CacheOK); !is || ok.RequestID != k.id {
		k.t.Fatalf("put %s: %+v", key, ok)
	}
}

func (k *keeper) del(key string) {
	k.t.Helper()
	k.id++
	k.say(&wire.CacheDelete{Tenant: k.n.Tenant(), Namespace: k.n.Namespace(), Cache: "c", Key: []byte(key), RequestID: wire.Some(k.id)})
	if v, is := k.message().(*wire.CacheValue); !is || v.RequestID != wire.Some(k.id) {
		k.t.Fatalf("delete %s: %+v", key, v)
	}
}

func some(s string) wire.Optional[[]byte] { return wire.Some([]byte(s)) }

// A watch tells every change of what it watches, in order, whether by key or
// by prefix; deletes are changes without a value (wire 11).
func TestWatchTellsChanges(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	k := p.keeper()
	k.put("a/1", "old")
	one := p.watch(&wire.CacheWatch{Key: some("a/1")})
	if one.started.ResumeOffset != 1 || one.started.Resnapshot || one.started.RetainedCount.Set {
		t.Fatalf("started %+v", one.started)
	}
	many := p.watch(&wire.CacheWatch{Prefix: some("a/")})
	all := p.watch(&wire.CacheWatch{Prefix: some("")})
	k.put("a/1", "x")
	k.put("b", "y")
	k.del("a/1")
	k.put("a/2", "")
	one.expect("a/1=x", "a/1-")
	many.expect("a/1=x", "a/1-", "a/2=")
	all.expect("a/1=x", "b=y", "a/1-", "a/2=")
}

// A watch can begin with the current values or go on where one was, also over
// a restart of the node.
func TestWatchFromBefore(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	k := dial(t, n).keeper()
	k.put("a", "1")
	k.put("b", "1")
	k.put("a", "2")
	k.del("b")
	p := dial(t, n)
	retained := p.watch(&wire.CacheWatch{Prefix: some(""), Retained: true})
	if retained.started.RetainedCount != wire.Some[uint64](1) || retained.started.ResumeOffset != 4 {
		t.Fatalf("started %+v", retained.started)
	}
	retained.expect("a=2")
	none := p.watch(&wire.CacheWatch{Key: some("nobody"), Retained: true})
	if none.started.RetainedCount != wire.Some[uint64](0) {
		t.Fatalf("started %+v", none.started)
	}
	p.watch(&wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some[uint64](1)}).expect("b=1", "a=2", "b-")
	n.Restart()
	p = dial(t, n)
	again := p.watch(&wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some[uint64](2)})
	again.expect("a=2", "b-")
	p.keeper().put("c", "1")
	again.expect("c=1")
	_, answer := p.askWatch(modern(), n.Token(), &wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some[uint64](6)})
	if e, is := answer.(*wire.SubscribeCursorError); !is || e.Reason != wire.CursorInFuture || e.Requested != 6 || e.Available != 5 {
		t.Fatalf("from the future: %#v", answer)
	}
}

// An entry whose time is over is told as a delete that says so.
func TestWatchTellsExpiry(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	w := p.watch(&wire.CacheWatch{Key: some("k")})
	l := p.login(modern(), n.Token())
	l.say(&wire.CachePut{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), Value: []byte("v"), TTLMS: wire.Some[uint64](1), RequestID: wire.Some[uint64](1)})
	l.message()
	if e := w.event(); !e.Value.Set || e.ExpiresAtMillis == 0 {
		t.Fatalf("put: %+v", e)
	}
	w.expect("k!")
}

// What a watch asks must make sense: each refusal has its sentence, and the
// stream that asked ends.
func TestWatchRefusals(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("auto-create", "false"))
	n.CreateCache("c")
	n.CreateCacheWith("sharded", broker.CacheOptions{Shards: 3, Durable: true})
	n.CreateCacheWith("memory", broker.CacheOptions{})
	scope := "cache.read:cache:" + n.Tenant() + "/" + n.Namespace() + "/c/a*"
	p := dial(t, n)
	for name, tc := range map[string]struct {
		m           *wire.CacheWatch
		token       string
		code, retry string
	}{
		"neither":            {&wire.CacheWatch{}, "", "invalid_request", "fatal"},
		"both":               {&wire.CacheWatch{Key: some("a"), Prefix: some("a")}, "", "invalid_request", "fatal"},
		"retained and from":  {&wire.CacheWatch{Key: some("a"), Retained: true, FromOffset: wire.Some[uint64](0)}, "", "invalid_request", "fatal"},
		"no shard named":     {&wire.CacheWatch{Cache: "sharded", Prefix: some("")}, "", "invalid_request", "fatal"},
		"no such shard":      {&wire.CacheWatch{Cache: "sharded", Prefix: some(""), Shard: wire.Some[uint32](3)}, "", "invalid_request", "fatal"},
		"in memory":          {&wire.CacheWatch{Cache: "memory", Key: some("a")}, "", "invalid_request", "fatal"},
		"unknown":            {&wire.CacheWatch{Cache: "unknown", Key: some("a")}, "", "not_found", "retry_after"},
		"another's key":      {&wire.CacheWatch{Key: some("b")}, n.Token(scope), "forbidden", "fatal"},
		"more than is given": {&wire.CacheWatch{Prefix: some("")}, n.Token(scope), "forbidden", "fatal"},
	} {
		t.Run(name, func(t *testing.T) {
			token := tc.token
			if token == "" {
				token = n.Token()
			}
			l, answer := p.askWatch(modern(), token, tc.m)
			expectError(t, answer, tc.code, tc.retry)
			l.ended()
		})
	}
	p.watchAs(n.Token(scope), &wire.CacheWatch{Prefix: some("ab")})
	p.watch(&wire.CacheWatch{Cache: "sharded", Prefix: some(""), Shard: wire.Some[uint32](2)})
	p.watch(&wire.CacheWatch{Cache: "sharded", Key: some("any"), Shard: wire.Some[uint32](99)}) // a key has its shard
}

// A watch that does not keep up is told where to go on, after all that was
// queued, and going on there misses nothing.
func TestSlowWatchIsToldWhereToGoOn(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("cache-watch-queue-capacity", "4"))
	small := dialWith(t, n, quic.ConnOptions{Windows: quic.Windows{Stream: 32 << 10, Conn: 64 << 10}})
	w := small.watch(&wire.CacheWatch{Prefix: some("")})
	k := dial(t, n).keeper()
	const count = 60
	value := string(make([]byte, 4000))
	for i := range count {
		k.put(fmt.Sprintf("k%d", i), value)
	}
	next := 0
	for {
		m := w.message()
		if e, is := m.(*wire.CacheEvent); is {
			if string(e.Key) != fmt.Sprintf("k%d", next) || e.Offset != uint64(next) {
				t.Fatalf("change %d: %s at %d", next, e.Key, e.Offset)
			}
			next++
			continue
		}
		lagged, is := m.(*wire.CacheWatchLagged)
		if !is || lagged.ResumeFrom != uint64(next) || next == count {
			t.Fatalf("last frame %#v after %d changes", m, next)
		}
		break
	}
	if _, _, err := w.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}
	again := dial(t, n).watch(&wire.CacheWatch{Prefix: some(""), FromOffset: wire.Some(uint64(next))})
	for ; next < count; next++ {
		if e := again.event(); string(e.Key) != fmt.Sprintf("k%d", next) {
			t.Fatalf("change %d is of %s", next, e.Key)
		}
	}
}

// A watch counts against the limit of subscriptions, ends with the rights of
// its token, and with its cache.
func TestLifeOfAWatch(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithClock(clock), felixtest.WithSetting("max-subscriptions-per-conn", "2"))
	p := dial(t, n)
	short := p.watchAs(n.TokenFor("ada", clock.Now().Add(5*time.Second)), &wire.CacheWatch{Prefix: some("")})
	p.watchAs(n.TokenFor("bob", clock.Now().Add(time.Hour)), &wire.CacheWatch{Prefix: some("")})
	p.subscribeAs(modern(), n.TokenFor("bob", clock.Now().Add(time.Hour)), &wire.Subscribe{Stream: "s"})
	_, answer := p.askWatch(modern(), n.TokenFor("bob", clock.Now().Add(time.Hour)), &wire.CacheWatch{Prefix: some("")})
	expectError(t, answer, "limit_exceeded", "fatal")
	clock.advance(5*time.Second + 61*time.Second)
	expectError(t, short.message(), "unauthenticated", "fatal")
	if _, _, err := short.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}

	q := dial(t, n)
	removed := q.watch(&wire.CacheWatch{Cache: "gone", Prefix: some("")})
	n.RemoveCache("gone")
	expectError(t, removed.message(), "not_found", "fatal")
	if _, _, err := removed.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("the watch of a removed cache: %v", err)
	}
}
