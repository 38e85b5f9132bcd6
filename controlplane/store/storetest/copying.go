package storetest

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// testCopies changes what was put in and what came out, and looks again.
func testCopies(f *fixture) {
	k := f.place()
	since := want(f.StreamsSnapshot(f.ctx))(f).NextSeq
	s := newStream(k, "s", 1)
	s.Retention.MaxAgeSeconds = ptr(uint64(7))
	f.ok(f.CreateStream(f.ctx, s))
	was := asJSON(s)
	*s.Retention.MaxAgeSeconds = 8
	*want(f.Stream(f.ctx, s.Key()))(f).Retention.MaxAgeSeconds = 9
	*want(f.Streams(f.ctx, k))(f)[0].Retention.MaxAgeSeconds = 10
	*changesSince(f, f.StreamChanges, since)[0].Stream.Retention.MaxAgeSeconds = 11
	f.same(asJSON(want(f.Stream(f.ctx, s.Key()))(f)), was)
	f.same(asJSON(changesSince(f, f.StreamChanges, since)[0].Stream), was)

	a, b, _ := f.trio()
	written := f.put(assigning(streamShard(s, 0), a, b))
	was = asJSON(written)
	written.Replicas[0] = "x"
	want(f.Assignment(f.ctx, written.ShardKey))(f).Replicas[0] = "y"
	want(f.AssignmentsOf(f.ctx, b))(f)[0].Replicas[0] = "z"
	f.same(asJSON(want(f.Assignment(f.ctx, written.ShardKey))(f)), was)

	n := want(f.Node(f.ctx, a))(f)
	was = asJSON(n)
	n.Spec.Labels["x"] = "y"
	f.same(asJSON(want(f.Node(f.ctx, a))(f)), was)

	f.ok(f.AddPolicy(f.ctx, k.TenantID, model.Policy{Subject: "s", Object: "o", Action: "a"}))
	want(f.Policies(f.ctx, k.TenantID))(f)[0].Subject = "t"
	f.same(want(f.Policies(f.ctx, k.TenantID))(f), []model.Policy{{Subject: "s", Object: "o", Action: "a"}})
	key := newKey("k")
	keys := want(f.EnsureSigningKey(f.ctx, k.TenantID, key))(f)
	keys[0].Seed[0]++
	f.same(want(f.SigningKeys(f.ctx, k.TenantID))(f)[0].Seed, key.Seed)
}

// testSorting uses names that a collation of a language sorts otherwise.
func testSorting(f *fixture) {
	names := []string{"A", "B", "Z", "_", "a", "a-", "a-b", "a.b", "aB", "a_b", "ab", "b", "z", "ß", "é", "日本"}
	slices.Sort(names)
	t := f.tenant("a")
	var keys []string
	for _, i := range []int{7, 3, 11, 0, 15, 4, 9, 1, 13, 5, 2, 14, 8, 6, 12, 10} {
		f.namespace(t, names[i])
	}
	for _, n := range want(f.Namespaces(f.ctx, t))(f) {
		keys = append(keys, n.Namespace)
	}
	f.same(keys, names)

	k := model.NamespaceKey{TenantID: t, Namespace: "a"}
	for _, i := range []int{7, 3, 11, 0, 15, 4, 9, 1, 13, 5, 2, 14, 8, 6, 12, 10} {
		f.stream(k, names[i], 1)
	}
	since := want(f.StreamsSnapshot(f.ctx))(f).NextSeq
	keys = nil
	for _, s := range want(f.Streams(f.ctx, k))(f) {
		keys = append(keys, s.Stream)
	}
	f.same(keys, names)
	// Cascades go by the same order.
	f.ok(f.DeleteTenant(f.ctx, t))
	keys = nil
	for _, c := range changesSince(f, f.StreamChanges, since) {
		keys = append(keys, c.Key.Stream)
	}
	f.same(keys, names)
}
