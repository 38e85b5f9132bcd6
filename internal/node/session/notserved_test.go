package session_test

import (
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/wire"
)

// elsewhere is the owner that the tests name.
var elsewhere = session.Owner{NodeID: "b", Addr: "10.0.0.2:5000", Generation: 7}

// wantNotLeader checks that an answer names that owner.
func wantNotLeader(t *testing.T, what string, m wire.Message) {
	t.Helper()
	got, is := m.(*wire.NotLeader)
	if !is || got.NodeID != "b" || got.Addr.Value != "10.0.0.2:5000" || got.Generation != 7 {
		t.Errorf("%s: answer %#v, want not_leader of b", what, m)
	}
}

// requests of every kind that a broker redirects, to stream s and cache c.
func redirected(p *peer) map[string]wire.Message {
	tenant, namespace := p.node.Tenant(), p.node.Namespace()
	key := []byte("k")
	group := wire.GroupRef{Tenant: tenant, Namespace: namespace, Stream: "s", Group: "g"}
	return map[string]wire.Message{
		"subscribe":       &wire.Subscribe{Tenant: tenant, Namespace: namespace, Stream: "s"},
		"stream_read":     &wire.StreamRead{Tenant: tenant, Namespace: namespace, Stream: "s", RequestID: 1},
		"offset_for_time": &wire.OffsetForTime{Tenant: tenant, Namespace: namespace, Stream: "s", RequestID: 1},
		"state_get":       &wire.StateGet{Tenant: tenant, Namespace: namespace, Stream: "s", EntityKey: key, Key: key, RequestID: 1},
		"publish_if":      p.publishIf(1, 0, "s", []byte("x")),
		"commit":          p.commit(1, "e", "x"),
		"cache_watch":     &wire.CacheWatch{Tenant: tenant, Namespace: namespace, Cache: "c", Key: wire.Some(key)},
		"cache_get":       &wire.CacheGet{Tenant: tenant, Namespace: namespace, Cache: "c", Key: key, RequestID: wire.Some[uint64](1)},
		"cache_put":       &wire.CachePut{Tenant: tenant, Namespace: namespace, Cache: "c", Key: key, Value: key, RequestID: wire.Some[uint64](1)},
		"cache_delete":    &wire.CacheDelete{Tenant: tenant, Namespace: namespace, Cache: "c", Key: key, RequestID: wire.Some[uint64](1)},
		"counter_add":     &wire.CounterAdd{Tenant: tenant, Namespace: namespace, Cache: "c", Key: key, Delta: 1, RequestID: 1},
		"counter_get":     &wire.CounterGet{Tenant: tenant, Namespace: namespace, Cache: "c", Key: key, RequestID: 1},
		"group_poll":      &wire.GroupPoll{GroupRef: group, MaxRecords: 1, RequestID: 1},
		"group_ack":       &wire.GroupAck{GroupRef: group, Offset: 1, RequestID: 1},
		"group_describe":  &wire.GroupDescribe{GroupRef: group, RequestID: 1},
		"group_delete":    &wire.GroupDelete{GroupRef: group, RequestID: 1},
	}
}

// Every request to a shard that another broker serves is sent there; without an
// owner it is refused so that the client comes again.
func TestRequestsToAShardServedElsewhere(t *testing.T) {
	m := startMember(t)
	streamOf, cacheOf := m.placed(1)
	p := dial(t, m)
	for name, request := range redirected(p) {
		l := p.login(modern(), m.Token())
		l.say(request)
		e, is := l.message().(*wire.Error)
		if !is || e.Code.Value != "shard_unavailable" || e.Retry.Value != "retry" || e.Detail.Value.Reason != "not_assigned" {
			t.Errorf("%s to a shard of nobody: %+v", name, e)
		}
	}
	m.dir.set(streamOf(0), elsewhere)
	m.dir.set(cacheOf(0), elsewhere)
	blind := modern()
	blind.Features &^= wire.FeatureRedirect
	for name, request := range redirected(p) {
		l := p.login(modern(), m.Token())
		l.say(request)
		wantNotLeader(t, name, l.message())
		l = p.login(blind, m.Token())
		l.say(request)
		expectError(t, l.message(), "not_leader", "redirect")
	}
	// An owner whose address is not known is named all the same.
	m.dir.set(streamOf(0), session.Owner{NodeID: "b", Generation: 8})
	l := p.login(modern(), m.Token())
	l.say(&wire.Subscribe{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s"})
	if got, is := l.message().(*wire.NotLeader); !is || got.Addr.Set || got.NodeID != "b" || got.Generation != 8 {
		t.Errorf("%+v", got)
	}
	// One that is to be this node, which has not heard of it yet, is no redirect.
	m.dir.set(streamOf(0), session.Owner{NodeID: "me", Addr: m.Addr(), Generation: 9, Local: true})
	l = p.login(modern(), m.Token())
	l.say(&wire.Subscribe{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s"})
	expectError(t, l.message(), "shard_unavailable", "retry")
}

// Publishes are refused in the form that names their request: never with a
// message that a publish stream does not expect (wire 8.3).
func TestPublishesToAShardServedElsewhere(t *testing.T) {
	m := startMember(t)
	streamOf, _ := m.placed(1)
	p := dial(t, m)
	l := p.login(modern(), m.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); !a.Failed || a.Code != wire.CodeShardUnavailable || a.Retry != wire.Retry || a.Detail.Reason != "not_assigned" || a.HasOwner {
		t.Errorf("%+v", a)
	}
	m.dir.set(streamOf(0), elsewhere)
	l.send(p.publish(2, "s", []byte("x")).Append(nil))
	a := l.ack()
	if !a.Failed || a.Code != wire.CodeNotLeader || a.Retry != wire.Redirect {
		t.Errorf("%+v", a)
	}
	if !a.HasOwner || a.OwnerNode != "b" || a.OwnerAddr != "10.0.0.2:5000" || a.OwnerGeneration != 7 {
		t.Errorf("%+v", a)
	}
	l.say(&wire.JSONPublish{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Payload: []byte("x"), RequestID: wire.Some[uint64](3)})
	if e, is := l.message().(*wire.PublishError); !is || e.RequestID != 3 || e.Code.Value != "not_leader" || e.Retry.Value != "redirect" {
		t.Errorf("%+v", e)
	}
	l.say(&wire.PublishIdempotent{
		Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Payloads: wire.AppendBlock(nil, []byte("x")), RequestID: 4, ProducerID: 9,
	})
	expectRefused(t, l.message(), 4, wire.RefusedReason{Kind: wire.RefusedNotLeader, NodeID: "b", Addr: wire.Some("10.0.0.2:5000")})
	noOwner := modern()
	noOwner.Flags &^= wire.FlagAckOwner
	l = p.login(noOwner, m.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Code != wire.CodeNotLeader || a.HasOwner {
		t.Errorf("%+v", a)
	}
	// Nobody waits for an unacked one, and the stream goes on.
	unacked := p.publish(0, "s", []byte("x"))
	unacked.Acked = false
	l.send(unacked.Append(nil))
	l.send(p.publish(2, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.RequestID != 2 || a.Code != wire.CodeNotLeader {
		t.Errorf("%+v", a)
	}
}

// One stream asks a shard on its way out and in: handles are looked up anew.
func TestRequestsFollowTheAssignment(t *testing.T) {
	m := startMember(t)
	streamOf, cacheOf := m.placed(1)
	p := dial(t, m)
	l := p.login(modern(), m.Token())
	group := wire.GroupRef{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Group: "g"}
	for round := range uint64(3) {
		m.own(streamOf(0), 2*round+1)
		m.own(cacheOf(0), 2*round+1)
		l.send(p.publish(1, "s", []byte("x")).Append(nil))
		if a := l.ack(); a.Failed || a.Offset != round {
			t.Fatalf("round %d: %+v", round, a)
		}
		l.say(&wire.CachePut{Tenant: m.Tenant(), Namespace: m.Namespace(), Cache: "c", Key: []byte("k"), Value: []byte("v"), RequestID: wire.Some[uint64](1)})
		if got, is := l.message().(*wire.CacheOK); !is {
			t.Fatalf("round %d: %#v", round, got)
		}
		l.say(&wire.GroupPoll{GroupRef: group, MaxRecords: 10, RequestID: 2})
		if got, is := l.message().(*wire.GroupRecords); !is || len(got.Records) == 0 {
			t.Fatalf("round %d: %#v", round, got)
		}
		m.lose(streamOf(0), 2*round+2, elsewhere)
		m.lose(cacheOf(0), 2*round+2, elsewhere)
		l.send(p.publish(3, "s", []byte("y")).Append(nil))
		if a := l.ack(); a.Code != wire.CodeNotLeader {
			t.Fatalf("round %d: %+v", round, a)
		}
		l.say(&wire.GroupPoll{GroupRef: group, MaxRecords: 10, RequestID: 4})
		if got, is := l.message().(*wire.NotLeader); !is || got.NodeID != "b" {
			t.Fatalf("round %d: %#v", round, got)
		}
		l.say(&wire.CacheGet{Tenant: m.Tenant(), Namespace: m.Namespace(), Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](5)})
		if got, is := l.message().(*wire.NotLeader); !is || got.NodeID != "b" {
			t.Fatalf("round %d: %#v", round, got)
		}
	}
}

// Event streams whose shard goes to another broker end with whom to ask and
// where to go on; a client that does not read that gets an error.
func TestEventStreamsOfAShardThatMoves(t *testing.T) {
	m := startMember(t)
	streamOf, cacheOf := m.placed(1)
	m.own(streamOf(0), 1)
	m.own(cacheOf(0), 1)
	p := dial(t, m)
	blind := modern()
	blind.Features &^= wire.FeatureShardMoved
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	fresh := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	old := p.subscribe(blind, &wire.Subscribe{Stream: "s"})
	watch := p.watch(&wire.CacheWatch{Prefix: some("")})
	oldWatch := p.watchOffering(blind, m.Token(), &wire.CacheWatch{Prefix: some("")})
	l := p.login(modern(), m.Token())
	l.send(p.publish(1, "s", []byte("a"), []byte("b")).Append(nil))
	l.ack()
	for _, e := range []*eventLane{sub, fresh, old} {
		if b := e.batch(); b.Count() != 2 {
			t.Fatalf("%+v", b)
		}
	}
	l.say(&wire.CachePut{Tenant: m.Tenant(), Namespace: m.Namespace(), Cache: "c", Key: []byte("k"), Value: []byte("v"), RequestID: wire.Some[uint64](1)})
	l.message()
	at := watch.event().Offset
	oldWatch.event()

	m.lose(streamOf(0), 7, elsewhere)
	m.lose(cacheOf(0), 7, elsewhere)
	wantMoved(t, sub, 2)
	wantMoved(t, fresh, 2)
	wantMoved(t, watch.eventLane, at+1)
	for _, e := range []*eventLane{old, oldWatch.eventLane} {
		h, payload := e.frame()
		said, err := wire.ParseMessage(payload)
		if err != nil || h.Flags != 0 {
			t.Fatal(err)
		}
		expectError(t, said, "shard_unavailable", "retry")
		if said.(*wire.Error).Detail.Value.Reason != "moving" {
			t.Errorf("%+v", said)
		}
		e.ended()
	}
}

// One that has not been given anything yet is told where it stood.
func TestMoveBeforeAnyEvent(t *testing.T) {
	m := startMember(t)
	streamOf, _ := m.placed(1)
	m.own(streamOf(0), 1)
	p := dial(t, m)
	l := p.login(modern(), m.Token())
	l.send(p.publish(1, "s", []byte("a"), []byte("b"), []byte("c")).Append(nil))
	l.ack()
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	m.lose(streamOf(0), 7, elsewhere)
	wantMoved(t, sub, 3)
	// A poll that waits ends too.
	m.own(streamOf(0), 8)
	q := p.login(modern(), m.Token())
	q.say(&wire.GroupPoll{
		GroupRef: wire.GroupRef{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Group: "g"}, MaxRecords: 10, RequestID: 1,
	})
	if got, is := q.message().(*wire.GroupRecords); !is || len(got.Records) != 3 {
		t.Fatalf("%#v", got)
	}
	q.say(&wire.GroupPoll{
		GroupRef:   wire.GroupRef{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", Group: "g"},
		MaxRecords: 10, WaitMS: 20_000, RequestID: 2,
	})
	until(t, "the poll waits", func() bool { return m.node.Core().Stats().Groups.Waiting == 1 })
	m.lose(streamOf(0), 9, elsewhere)
	if got, is := q.message().(*wire.NotLeader); !is || got.NodeID != "b" || got.Generation != 9 {
		t.Fatalf("%#v", got)
	}
}

func wantMoved(t *testing.T, e *eventLane, from uint64) {
	t.Helper()
	_, payload := e.frame()
	m, err := wire.ParseMessage(payload)
	if err != nil {
		t.Fatal(err)
	}
	got, is := m.(*wire.ShardMoved)
	if !is || got.NodeID.Value != "b" || got.Addr.Value != "10.0.0.2:5000" || got.Generation != 7 || got.ResumeFrom != wire.Some(from) {
		t.Errorf("%#v, want shard_moved from %d", m, from)
	}
	e.ended()
}

// What asks for more copies than there can be is not served and not redirected.
func TestUnreplicatedShards(t *testing.T) {
	m := startMember(t)
	full := broker.StreamName{Tenant: memberTenant, Namespace: memberNamespace, Name: "s"}
	m.must(m.node.Core().AddStream(full, broker.StreamOptions{Durable: true, Placed: true, Copies: 3}))
	m.own(broker.ShardID{Kind: broker.KindStream, Tenant: memberTenant, Namespace: memberNamespace, Name: "s"}, 1)
	p := dial(t, m)
	l := p.login(modern(), m.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Code != wire.CodeShardUnavailable || a.Detail.Reason != "failed" {
		t.Errorf("%+v", a)
	}
	l.say(&wire.Subscribe{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s"})
	expectError(t, l.message(), "shard_unavailable", "retry")
}

// Questions about placement are answered from the directory, and by a node that
// stands alone as ever.
func TestPlacementQuestions(t *testing.T) {
	m := startMember(t)
	streamOf, cacheOf := m.placed(3)
	m.own(streamOf(0), 4)
	m.dir.set(streamOf(1), elsewhere)
	m.dir.set(cacheOf(2), session.Owner{NodeID: "d", Generation: 2})
	m.dir.brokers = []session.BrokerAddr{{NodeID: "me", Addr: m.Addr()}, {NodeID: "b", Addr: "10.0.0.2:5000"}, {NodeID: "silent"}}
	p := dial(t, m)
	l := p.open()
	l.say(modern().Auth(m.Tenant(), m.Token()))
	ok, is := l.message().(*wire.AuthOK)
	if !is || ok.ServerFeatures.Value&(wire.FeatureTopology|wire.FeatureRedirect) != wire.FeatureTopology|wire.FeatureRedirect {
		t.Fatalf("%+v", ok)
	}
	ask := func(request, want wire.Message) {
		t.Helper()
		l.say(request)
		_, got := l.frame()
		if want := wire.AppendMessage(nil, want)[wire.HeaderSize:]; string(got) != string(want) {
			t.Errorf("%s\n got %s\nwant %s", request.MessageType(), got, want)
		}
	}
	ask(&wire.Topology{}, &wire.TopologyView{Brokers: []wire.TopologyBroker{{NodeID: "me", Addr: m.Addr()}, {NodeID: "b", Addr: "10.0.0.2:5000"}}})
	ask(&wire.StreamShards{Tenant: m.Tenant(), Namespace: m.Namespace(), Stream: "s", RequestID: 1}, &wire.StreamShardsView{Shards: 3, RequestID: 1})
	ask(&wire.CacheShards{Tenant: m.Tenant(), Namespace: m.Namespace(), Cache: "c", RequestID: 2}, &wire.CacheShardsView{Shards: 3, RequestID: 2})
	ask(&wire.ShardOwners{Tenant: m.Tenant(), Namespace: m.Namespace(), Name: "s", Kind: wire.KindStream, RequestID: 3}, &wire.ShardOwnersView{RequestID: 3, Owners: []wire.ShardOwner{
		{Shard: 0, NodeID: wire.Some("me"), Addr: wire.Some(m.Addr()), Generation: 4},
		{Shard: 1, NodeID: wire.Some("b"), Addr: wire.Some("10.0.0.2:5000"), Generation: 7},
		{Shard: 2, Unavailable: wire.Some("not_assigned")},
	}})
	ask(&wire.ShardOwners{Tenant: m.Tenant(), Namespace: m.Namespace(), Name: "c", Kind: wire.KindCache, RequestID: 4}, &wire.ShardOwnersView{RequestID: 4, Owners: []wire.ShardOwner{
		{Shard: 0, Unavailable: wire.Some("not_assigned")},
		{Shard: 1, Unavailable: wire.Some("not_assigned")},
		{Shard: 2, NodeID: wire.Some("d"), Generation: 2},
	}})
	ask(&wire.ShardOwners{Tenant: m.Tenant(), Namespace: m.Namespace(), Name: "none", Kind: wire.KindStream, RequestID: 5}, &wire.ShardOwnersView{RequestID: 5})

	alone := felixtest.Start(t)
	alone.CreateStream("s", 2)
	p = dial(t, alone)
	l = p.open()
	l.say(modern().Auth(alone.Tenant(), alone.Token()))
	if ok, is := l.message().(*wire.AuthOK); !is || ok.ServerFeatures.Value&(wire.FeatureTopology|wire.FeatureRedirect) != 0 {
		t.Fatalf("%+v", ok)
	}
	ask(&wire.Topology{}, &wire.TopologyView{})
	ask(&wire.ShardOwners{Tenant: alone.Tenant(), Namespace: alone.Namespace(), Name: "s", Kind: wire.KindStream, RequestID: 1}, &wire.ShardOwnersView{RequestID: 1, Owners: []wire.ShardOwner{{Shard: 0}, {Shard: 1}}})
}
