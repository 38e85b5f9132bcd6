package session_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// What was written to a cache on the log is there after a restart, with its
// version; deletes stay deleted.
func TestCacheOnTheLogSurvivesARestart(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	n.CreateCacheWith("c", broker.CacheOptions{Shards: 3, Durable: true})
	k := dial(t, n).keeper()
	for i := range 50 {
		k.put(fmt.Sprintf("k%d", i), fmt.Sprintf("v%d", i))
	}
	k.put("k7", "newer")
	k.del("k8")
	get := func(l *lane, key string) *wire.CacheValue {
		t.Helper()
		l.say(&wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte(key), RequestID: wire.Some[uint64](1)})
		v, is := l.message().(*wire.CacheValue)
		if !is || string(v.Key) != key {
			t.Fatalf("get %s: %+v", key, v)
		}
		return v
	}
	before := get(k.lane, "k7")
	n.Restart()
	l := dial(t, n).login(modern(), n.Token())
	for i := range 50 {
		key, want := fmt.Sprintf("k%d", i), fmt.Sprintf("v%d", i)
		v := get(l, key)
		switch {
		case i == 7:
			want = "newer"
			if v.Version != before.Version || !v.Version.Set {
				t.Fatalf("version %+v, before %+v", v.Version, before.Version)
			}
		case i == 8:
			if v.Value.Set {
				t.Fatalf("k8 is back as %q", v.Value.Value)
			}
			continue
		}
		if string(v.Value.Value) != want {
			t.Fatalf("%s is %q, want %q", key, v.Value.Value, want)
		}
	}
}

// Requests of one stream are answered in their order, whatever each waits
// for, and a get sees the put that came before it on its stream.
func TestPipelinedCacheRequestsKeepTheirOrder(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	n.CreateCacheWith("c", broker.CacheOptions{Shards: 4, Durable: true})
	l := dial(t, n).login(modern(), n.Token())
	tenant, ns := n.Tenant(), n.Namespace()
	var out []byte
	id := uint64(0)
	ask := func(m wire.Message) { out = wire.AppendMessage(out, m) }
	const rounds = 200
	for i := range rounds {
		key, value := fmt.Appendf(nil, "k%d", i%17), fmt.Appendf(nil, "v%d", i)
		ask(&wire.CachePut{Tenant: tenant, Namespace: ns, Cache: "c", Key: key, Value: value, RequestID: wire.Some(id)})
		ask(&wire.CacheGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: key, RequestID: wire.Some(id + 1)})
		ask(&wire.CacheGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("never"), RequestID: wire.Some(id + 2)})
		ask(&wire.CacheGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: nil, RequestID: wire.Some(id + 3)}) // refused
		ask(&wire.CounterAdd{Tenant: tenant, Namespace: ns, Cache: "c", Key: key, Delta: 1, RequestID: id + 4})
		ask(&wire.CounterGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: key, RequestID: id + 5})
		ask(&wire.CacheShards{Tenant: tenant, Namespace: ns, Cache: "c", RequestID: id + 6})
		ask(&wire.CacheDelete{Tenant: tenant, Namespace: ns, Cache: "c", Key: key, RequestID: wire.Some(id + 7)})
		id += 8
	}
	go func() { _, _ = l.st.Write(out) }() // more than the windows of both sides hold
	id = 0
	for i := range rounds {
		value := fmt.Sprintf("v%d", i)
		if ok, is := l.message().(*wire.CacheOK); !is || ok.RequestID != id {
			t.Fatalf("round %d: put %+v", i, ok)
		}
		if v, is := l.message().(*wire.CacheValue); !is || v.RequestID.Value != id+1 || string(v.Value.Value) != value {
			t.Fatalf("round %d: get %+v, want %s", i, v, value)
		}
		if v, is := l.message().(*wire.CacheValue); !is || v.RequestID.Value != id+2 || v.Value.Set {
			t.Fatalf("round %d: miss %+v", i, v)
		}
		expectError(t, l.message(), "invalid_request", "fatal")
		sum := int64(i/17 + 1)
		for j := range uint64(2) {
			if v, is := l.message().(*wire.CounterValue); !is || v.RequestID != id+4+j || v.Value != wire.Some(sum) {
				t.Fatalf("round %d: counter %+v, want %d", i, v, sum)
			}
		}
		if v, is := l.message().(*wire.CacheShardsView); !is || v.RequestID != id+6 || v.Shards != 4 {
			t.Fatalf("round %d: shards %+v", i, v)
		}
		if v, is := l.message().(*wire.CacheValue); !is || v.RequestID.Value != id+7 || string(v.Value.Value) != value {
			t.Fatalf("round %d: delete %+v", i, v)
		}
		id += 8
	}
}

// A request without an id is answered without one, after its commit, and ends
// its stream.
func TestOneShotCacheRequestsOnTheLog(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	p := dial(t, n)
	tenant, ns := n.Tenant(), n.Namespace()
	l := p.login(wire.LegacyOffer(), n.Token())
	l.say(&wire.CachePut{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), Value: []byte("v")})
	if _, is := l.message().(*wire.OK); !is {
		t.Fatal("put without an id")
	}
	l.ended()
	l = p.login(wire.LegacyOffer(), n.Token())
	l.say(&wire.CacheGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k")})
	if v, is := l.message().(*wire.CacheValue); !is || v.RequestID.Set || v.Version.Set || string(v.Value.Value) != "v" {
		t.Fatalf("get without an id: %+v", v)
	}
	l.ended()
	l = p.login(wire.LegacyOffer(), n.Token())
	l.say(&wire.CacheDelete{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k")})
	if v, is := l.message().(*wire.CacheValue); !is || v.RequestID.Set || string(v.Value.Value) != "v" {
		t.Fatalf("delete without an id: %+v", v)
	}
	l.ended()
}

// Conditional writes in a pipeline are judged one after the other.
func TestConditionsOnTheLog(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable())
	l := dial(t, n).login(modern(), n.Token())
	tenant, ns := n.Tenant(), n.Namespace()
	putIf := func(id uint64, value string, c wire.Condition) wire.Message {
		return &wire.CachePutIf{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), Value: []byte(value), Condition: c, RequestID: id}
	}
	var out []byte
	for _, m := range []wire.Message{
		putIf(1, "a", wire.Condition{Absent: true}),
		putIf(2, "b", wire.Condition{Absent: true}),
		putIf(3, "b", wire.Condition{Version: 0}),
		putIf(4, "c", wire.Condition{Version: 0}),
		&wire.CacheDeleteIf{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), Version: 0, RequestID: 5},
		&wire.CacheDeleteIf{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), Version: 1, RequestID: 6},
		putIf(7, "d", wire.Condition{Version: 1}),
	} {
		out = wire.AppendMessage(out, m)
	}
	l.send(out)
	none := wire.Optional[uint64]{}
	for _, want := range []wire.CacheConditionResult{
		{Applied: true, Version: wire.Some[uint64](0), RequestID: 1},
		{Applied: false, Version: wire.Some[uint64](0), RequestID: 2},
		{Applied: true, Version: wire.Some[uint64](1), RequestID: 3},
		{Applied: false, Version: wire.Some[uint64](1), RequestID: 4},
		{Applied: false, Version: wire.Some[uint64](1), RequestID: 5},
		{Applied: true, Version: none, RequestID: 6},
		{Applied: false, Version: none, RequestID: 7},
	} {
		if got, is := l.message().(*wire.CacheConditionResult); !is || *got != want {
			t.Fatalf("answer %+v, want %+v", got, want)
		}
	}
}

// Counters: a sum with the delta in it, none before the first, refused past
// what 64 bits hold, kept over a restart, apart from values (wire 11).
func TestCounters(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("auto-create", "false"))
	n.CreateCache("c")
	n.CreateCacheWith("memory", broker.CacheOptions{})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	tenant, ns := n.Tenant(), n.Namespace()
	value := func(m wire.Message, want wire.Optional[int64]) {
		t.Helper()
		l.say(m)
		if v, is := l.message().(*wire.CounterValue); !is || v.RequestID != 1 || v.Value != want {
			t.Fatalf("%#v: %+v, want %+v", m, v, want)
		}
	}
	add := func(delta int64) wire.Message {
		return &wire.CounterAdd{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), Delta: delta, RequestID: 1}
	}
	get := &wire.CounterGet{Tenant: tenant, Namespace: ns, Cache: "c", Key: []byte("k"), RequestID: 1}
	value(get, wire.Optional[int64]{})
	value(add(5), wire.Some[int64](5))
	value(add(-7), wire.Some[int64](-2))
	value(get, wire.Some[int64](-2))
	l.say(add(math.MinInt64))
	expectError(t, l.message(), "invalid_request", "fatal")
	p.keeper().put("k", "a value of the same key")
	n.Restart()
	l = dial(t, n).login(modern(), n.Token())
	value(get, wire.Some[int64](-2))
	value(add(2), wire.Some[int64](0))

	for name, m := range map[string]*wire.CounterAdd{
		"invalid_request": {Tenant: tenant, Namespace: ns, Cache: "memory", Key: []byte("k"), Delta: 1, RequestID: 2},
		"not_found":       {Tenant: tenant, Namespace: ns, Cache: "unknown", Key: []byte("k"), Delta: 1, RequestID: 2},
		"forbidden":       {Tenant: "other", Namespace: ns, Cache: "c", Key: []byte("k"), Delta: 1, RequestID: 2},
	} {
		l := dial(t, n).login(modern(), n.Token())
		l.say(m)
		if e, is := l.message().(*wire.Error); !is || e.Code.Value != name {
			t.Fatalf("%s: %+v", name, e)
		}
	}
}
