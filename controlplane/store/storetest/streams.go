package storetest

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testStreams(f *fixture) {
	k := f.place()
	since := want(f.StreamsSnapshot(f.ctx))(f).NextSeq
	full := model.Stream{
		TenantID: k.TenantID, Namespace: k.Namespace, Stream: "full", Kind: model.KindQueue,
		Shards: 64, ReplicationFactor: 5,
		Retention:   model.Retention{MaxAgeSeconds: ptr(uint64(1)), MaxSizeBytes: ptr(uint64(1) << 50)},
		Consistency: model.Quorum, Delivery: model.AtLeastOnce, Durable: true,
		Region: "eu-west-1", Routing: model.JumpHash, UID: "0123456789abcdef0123456789abcdef",
	}
	bare := model.Stream{
		TenantID: k.TenantID, Namespace: k.Namespace, Stream: "bare", Kind: model.KindStream, Shards: 1,
		ReplicationFactor: 1, Consistency: model.Leader, Delivery: model.AtMostOnce,
	}
	f.same(want(f.Streams(f.ctx, k))(f), []model.Stream{})
	f.ok(f.CreateStream(f.ctx, full))
	f.ok(f.CreateStream(f.ctx, bare))
	f.conflict(f.CreateStream(f.ctx, bare), store.Exists)
	f.missing(f.CreateStream(f.ctx, newStream(model.NamespaceKey{TenantID: k.TenantID, Namespace: "none"}, "s", 1)), "namespace")
	f.missing(f.CreateStream(f.ctx, newStream(model.NamespaceKey{TenantID: "none", Namespace: "none"}, "s", 1)), "")

	f.same(want(f.Stream(f.ctx, full.Key()))(f), full)
	f.same(want(f.Streams(f.ctx, k))(f), []model.Stream{bare, full})
	_, err := f.Stream(f.ctx, newStream(k, "none", 1).Key())
	f.missing(err, "stream")
	_, err = f.Streams(f.ctx, model.NamespaceKey{TenantID: k.TenantID, Namespace: "none"})
	f.missing(err, "namespace")

	before := want(f.NowMillis(f.ctx))(f)
	f.ok(f.DeleteStream(f.ctx, full.Key()))
	after := want(f.NowMillis(f.ctx))(f)
	f.missing(f.DeleteStream(f.ctx, full.Key()), "stream")
	snap := want(f.StreamsSnapshot(f.ctx))(f)
	dead := f.tombstone(snap.Tombstones, full.UID)
	if dead.DeletedAtMillis < before || dead.DeletedAtMillis > after {
		f.Fatalf("deleted at %d, want between %d and %d", dead.DeletedAtMillis, before, after)
	}
	f.same(dead, model.Tombstone{
		Kind: model.StreamShard, TenantID: k.TenantID, Namespace: k.Namespace, Name: "full", UID: full.UID,
		DeletedAtMillis: dead.DeletedAtMillis,
	})
	f.same(changesSince(f, f.StreamChanges, since), []model.StreamChange{
		{Seq: since, Op: model.Created, Key: full.Key(), Stream: &full},
		{Seq: since + 1, Op: model.Created, Key: bare.Key(), Stream: &bare},
		{Seq: since + 2, Op: model.Deleted, Key: full.Key(), Tombstone: &dead},
	})

	// A stream of the same name is another one.
	again := full
	again.UID = "fedcba9876543210fedcba9876543210"
	f.ok(f.CreateStream(f.ctx, again))
	f.same(want(f.Stream(f.ctx, full.Key()))(f), again)
	f.tombstone(want(f.StreamsSnapshot(f.ctx))(f).Tombstones, full.UID)
}

// tombstone finds the one tombstone of a uid.
func (f *fixture) tombstone(list []model.Tombstone, uid string) model.Tombstone {
	f.Helper()
	list = slices.DeleteFunc(list, func(t model.Tombstone) bool { return t.UID != uid })
	if len(list) != 1 {
		f.Fatalf("%d tombstones of %s, want 1", len(list), uid)
	}
	return list[0]
}

func testStreamPatches(f *fixture) {
	k := f.place()
	s := f.stream(k, "s", 2)
	since := want(f.StreamsSnapshot(f.ctx))(f).NextSeq
	var changes []model.StreamChange
	patch := func(p model.StreamPatch) {
		f.Helper()
		f.same(want(f.PatchStream(f.ctx, s.Key(), p))(f), s)
		f.same(want(f.Stream(f.ctx, s.Key()))(f), s)
		now := s
		changes = append(changes, model.StreamChange{Seq: since + uint64(len(changes)), Op: model.Updated, Key: s.Key(), Stream: &now})
	}
	s.Retention = model.Retention{MaxAgeSeconds: ptr(uint64(60)), MaxSizeBytes: ptr(uint64(1024))}
	patch(model.StreamPatch{Retention: ptr(s.Retention)})
	// A retention replaces both bounds.
	s.Retention = model.Retention{MaxSizeBytes: ptr(uint64(2048))}
	patch(model.StreamPatch{Retention: ptr(s.Retention)})
	s.Retention = model.Retention{}
	patch(model.StreamPatch{Retention: &model.Retention{}})
	s.Consistency = model.Leader
	patch(model.StreamPatch{Consistency: ptr(model.Leader)})
	s.Delivery = model.AtMostOnce
	patch(model.StreamPatch{Delivery: ptr(model.AtMostOnce)})
	s.Durable = false
	patch(model.StreamPatch{Durable: ptr(false)})
	s.Durable, s.Consistency = true, model.Quorum
	patch(model.StreamPatch{Durable: ptr(true), Consistency: ptr(model.Quorum)})
	_, err := f.PatchStream(f.ctx, newStream(k, "none", 1).Key(), model.StreamPatch{Durable: ptr(true)})
	f.missing(err, "stream")
	f.same(changesSince(f, f.StreamChanges, since), changes)
}
