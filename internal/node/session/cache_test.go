package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// A cacheLane asks one cache of the test's namespace.
type cacheLane struct {
	*lane
	tenant, namespace string
	next              uint64
}

func (p *peer) cacheLane(o wire.Offer, token string) *cacheLane {
	return &cacheLane{lane: p.login(o, token), tenant: p.node.Tenant(), namespace: p.node.Namespace()}
}

func (l *cacheLane) id() wire.Optional[uint64] {
	l.next++
	return wire.Some(l.next)
}

func (l *cacheLane) get(key string) *wire.CacheValue {
	l.t.Helper()
	id := l.id()
	l.say(&wire.CacheGet{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte(key), RequestID: id})
	v, ok := l.message().(*wire.CacheValue)
	if !ok || v.RequestID != id || string(v.Key) != key {
		l.t.Fatalf("get %q: %+v", key, v)
	}
	return v
}

func (l *cacheLane) put(key, value string, ttl wire.Optional[uint64]) wire.Message {
	l.t.Helper()
	l.say(&wire.CachePut{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte(key), Value: []byte(value), TTLMS: ttl, RequestID: l.id()})
	return l.message()
}

func (l *cacheLane) mustPut(key, value string, ttl wire.Optional[uint64]) {
	l.t.Helper()
	if ok, is := l.put(key, value, ttl).(*wire.CacheOK); !is || ok.RequestID != l.next {
		l.t.Fatalf("put %q was refused", key)
	}
}

// Put, get, overwrite, delete: a miss is absent, an empty value is not, and a
// delete answers what it removed.
func TestCacheRoundTrip(t *testing.T) {
	n := felixtest.Start(t)
	l := dial(t, n).cacheLane(modern(), n.Token())
	if v := l.get("k"); v.Value.Set || v.Version.Set {
		t.Fatalf("miss: %+v", v)
	}
	l.mustPut("k", "", wire.Optional[uint64]{})
	first := l.get("k")
	if !first.Value.Set || len(first.Value.Value) != 0 || !first.Version.Set {
		t.Fatalf("empty value: %+v", first)
	}
	l.mustPut("k", "v", wire.Optional[uint64]{})
	if v := l.get("k"); string(v.Value.Value) != "v" || v.Version.Value <= first.Version.Value {
		t.Fatalf("overwritten: %+v after %+v", v, first)
	}
	l.say(&wire.CacheDelete{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte("k"), RequestID: l.id()})
	if v := l.message().(*wire.CacheValue); string(v.Value.Value) != "v" || v.Version.Set {
		t.Fatalf("delete: %+v", v)
	}
	l.say(&wire.CacheDelete{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte("k"), RequestID: l.id()})
	if v := l.message().(*wire.CacheValue); v.Value.Set {
		t.Fatalf("delete of nothing: %+v", v)
	}
}

// A condition that does not hold is an answer with the current version.
func TestCacheConditions(t *testing.T) {
	n := felixtest.Start(t)
	l := dial(t, n).cacheLane(modern(), n.Token())
	putIf := func(c wire.Condition) *wire.CacheConditionResult {
		id := l.id()
		l.say(&wire.CachePutIf{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte("k"), Value: []byte("v"), Condition: c, RequestID: id.Value})
		r, ok := l.message().(*wire.CacheConditionResult)
		if !ok || r.RequestID != id.Value {
			t.Fatalf("put_if: %+v", r)
		}
		return r
	}
	deleteIf := func(version uint64) *wire.CacheConditionResult {
		l.say(&wire.CacheDeleteIf{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte("k"), Version: version, RequestID: l.id().Value})
		return l.message().(*wire.CacheConditionResult)
	}
	if r := putIf(wire.Condition{Version: 1}); r.Applied || r.Version.Set {
		t.Fatalf("version of an absent key: %+v", r)
	}
	created := putIf(wire.Condition{Absent: true})
	if !created.Applied || !created.Version.Set {
		t.Fatalf("absent: %+v", created)
	}
	if r := putIf(wire.Condition{Absent: true}); r.Applied || r.Version != created.Version {
		t.Fatalf("absent again: %+v", r)
	}
	updated := putIf(wire.Condition{Version: created.Version.Value})
	if !updated.Applied || updated.Version.Value <= created.Version.Value {
		t.Fatalf("matching version: %+v", updated)
	}
	if r := deleteIf(created.Version.Value); r.Applied || r.Version != updated.Version {
		t.Fatalf("delete of an old version: %+v", r)
	}
	if r := deleteIf(updated.Version.Value); !r.Applied || r.Version.Set {
		t.Fatalf("delete: %+v", r)
	}
}

// Every time to live has one documented result; a refused one leaves the old
// value with its old deadline, and the last accepted put alone decides.
func TestTimeToLive(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock))
	l := dial(t, n).cacheLane(modern(), n.Token())
	l.mustPut("k", "old", wire.Some[uint64](1000))
	for _, refused := range []uint64{0, 1 << 63, 1<<63 - 1, 1<<64 - 1} {
		e, ok := l.put("k", "new", wire.Some(refused)).(*wire.Error)
		if !ok || e.Code.Value != "invalid_request" {
			t.Fatalf("ttl %d: %+v", refused, e)
		}
		if v := l.get("k"); string(v.Value.Value) != "old" {
			t.Fatalf("ttl %d was refused and left %q", refused, v.Value.Value)
		}
	}
	clock.advance(999 * time.Millisecond)
	if v := l.get("k"); !v.Value.Set {
		t.Fatal("expired early")
	}
	clock.advance(2 * time.Millisecond)
	if v := l.get("k"); v.Value.Set {
		t.Fatal("an expired entry was returned")
	}
	l.mustPut("k", "short", wire.Some[uint64](10))
	l.mustPut("k", "kept", wire.Optional[uint64]{})
	clock.advance(time.Hour)
	if v := l.get("k"); string(v.Value.Value) != "kept" {
		t.Fatal("the timer of an overwritten put removed its successor")
	}
	// What no u64 holds is a malformed message and ends the stream unanswered.
	for _, bad := range []string{"-1", "1.5", "1e30", `"5"`, "18446744073709551616"} {
		l := dial(t, n).cacheLane(modern(), n.Token())
		text := `{"type":"cache_put","tenant_id":"t1","namespace":"default","cache":"c","key":"k","value":"","request_id":1,"ttl_ms":` + bad + `}`
		l.send(append(wire.AppendHeader(nil, 0, len(text)), text...))
		l.ended()
	}
	if v := l.get("k"); string(v.Value.Value) != "kept" {
		t.Fatal("a malformed put changed the key")
	}
}

// Without a request id a cache stream serves one request, and a client that
// does not negotiate gets nothing it does not know.
func TestOneShotCacheRequests(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(wire.LegacyOffer(), n.Token())
	l.say(&wire.CachePut{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), Value: []byte("v")})
	if _, ok := l.message().(*wire.OK); !ok {
		t.Fatal("put without an id is not answered ok")
	}
	l.ended()
	l = p.login(wire.LegacyOffer(), n.Token())
	l.say(&wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k")})
	if v := l.message().(*wire.CacheValue); string(v.Value.Value) != "v" || v.RequestID.Set || v.Version.Set {
		t.Fatalf("get without an id: %+v", v)
	}
	l.ended()
}

// What is refused: an unknown cache, a foreign tenant, a missing right, a key
// outside its grammar. Only the middle two end the stream.
func TestCacheRefusals(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateCache("c")
	readOnly := n.Token("cache.read:cache:t1/default/c")
	cases := map[string]struct {
		ask   wire.Message
		token string
		code  string
		text  string
		ends  bool
	}{
		"unknown cache":  {&wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "none", Key: []byte("k"), RequestID: wire.Some[uint64](1)}, n.Token(), "not_found", "cache scope not found: t1/default/none", false},
		"foreign tenant": {&wire.CacheGet{Tenant: "t2", Namespace: "default", Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](1)}, n.Token(), "forbidden", "tenant mismatch", true},
		"no right":       {&wire.CachePut{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](1)}, readOnly, "forbidden", "forbidden", true},
		"empty key":      {&wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "c", RequestID: wire.Some[uint64](1)}, n.Token(), "invalid_request", "", false},
		"long key":       {&wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte(strings.Repeat("k", 65536)), RequestID: wire.Some[uint64](1)}, n.Token(), "invalid_request", "", false},
	}
	p := dial(t, n)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := p.login(modern(), c.token)
			l.say(c.ask)
			e, ok := l.message().(*wire.Error)
			if !ok || e.Code.Value != c.code || c.text != "" && e.Message != c.text {
				t.Fatalf("answered %+v", e)
			}
			if c.ends {
				l.ended()
				return
			}
			l.say(&wire.CacheGet{Tenant: "t1", Namespace: "default", Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](2)})
			if v, ok := l.message().(*wire.CacheValue); !ok || v.RequestID.Value != 2 {
				t.Fatal("the stream did not go on")
			}
		})
	}
}

// A grant on a key or a key prefix is that much and no more.
func TestKeyScopedGrants(t *testing.T) {
	n := felixtest.Start(t)
	token := n.Token("cache.read:cache:t1/default/c/user:*", "cache.write:cache:t1/default/c/user:7")
	p := dial(t, n)
	l := p.cacheLane(modern(), token)
	l.mustPut("user:7", "v", wire.Optional[uint64]{})
	if v := l.get("user:7"); string(v.Value.Value) != "v" {
		t.Fatal("a granted key cannot be read")
	}
	l.get("user:8")
	for name, ask := range map[string]func(*cacheLane) wire.Message{
		"read": func(l *cacheLane) wire.Message {
			l.say(&wire.CacheGet{Tenant: l.tenant, Namespace: l.namespace, Cache: "c", Key: []byte("admin"), RequestID: l.id()})
			return l.message()
		},
		"write": func(l *cacheLane) wire.Message { return l.put("user:8", "v", wire.Optional[uint64]{}) },
	} {
		l := p.cacheLane(modern(), token)
		if e, ok := ask(l).(*wire.Error); !ok || e.Code.Value != "forbidden" {
			t.Fatalf("%s outside the grant: %+v", name, e)
		}
		l.ended()
	}
}
