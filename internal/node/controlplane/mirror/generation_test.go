package mirror

import (
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func TestShardsFollowTheirGenerations(t *testing.T) {
	r := newRig(t, "b1")
	r.node("b1")
	r.node("b2")
	r.tenant("t1")
	s := r.stream("t1", "orders")
	k := shardOf(s, 1)
	r.assign(k, "b1")
	r.pass()
	r.assign(k, "b2")
	r.assign(k, "b1")
	r.assign(k, "b2")
	r.pass()
	r.assign(k, "b1")
	r.pass()
	must(t, r.store.DeleteAssignment(t.Context(), k))
	r.pass()
	var got []string
	for _, step := range r.target.steps() {
		if strings.Contains(step, "shard") {
			got = append(got, step)
		}
	}
	want := []string{"assign shard t1/n/orders/1 at 0", "unassign shard t1/n/orders/1 at 3", "assign shard t1/n/orders/1 at 4", "release shard t1/n/orders/1"}
	if !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
}

// TestGenerationsThatBeginAnew: after a reset a lower generation counts, and a
// shard that stays is not interrupted.
func TestGenerationsThatBeginAnew(t *testing.T) {
	r := newRig(t, "b1")
	setup := func() (stays, goes model.ShardKey) {
		r.node("b1")
		r.node("b2")
		r.tenant("t1")
		s := model.Stream{TenantID: "t1", Namespace: "n", Stream: "orders", Kind: model.KindStream, Shards: 2, ReplicationFactor: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce, UID: "same"}
		must(t, r.store.CreateStream(t.Context(), s))
		return shardOf(s, 0), shardOf(s, 1)
	}
	stays, goes := setup()
	for range 6 {
		r.assign(stays, "b1")
		r.assign(goes, "b1")
	}
	r.pass()
	r.target.steps()
	fresh := openStore(t)
	r.store, r.source.store = fresh, fresh
	setup()
	r.assign(stays, "b1")
	r.assign(goes, "b2")
	for range 2 * resetLooks {
		r.pass()
	}
	got := r.target.steps()
	want := []string{"release shard t1/n/orders/1", "assign shard t1/n/orders/0 at 6"}
	if !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
}

// TestAnInstanceThatLags: an instance that is behind the others for a moment is
// no reset, and takes nothing back.
func TestAnInstanceThatLags(t *testing.T) {
	r := newRig(t, "b1")
	r.node("b1")
	r.node("b2")
	r.tenant("t1")
	s := r.stream("t1", "orders")
	r.assign(shardOf(s, 0), "b1")
	lagging := openStore(t)
	dump, err := r.store.Export(t.Context())
	must(t, err)
	must(t, lagging.Import(t.Context(), dump, true))
	r.assign(shardOf(s, 0), "b2")
	r.assign(shardOf(s, 0), "b1")
	r.pass()
	r.target.steps()
	snapshots := r.source.count("assignments snapshot")
	r.source.set(func() { r.source.store = lagging })
	for range resetLooks - 1 {
		r.pass()
	}
	r.source.set(func() { r.source.store = r.store })
	r.pass()
	if got := r.source.count("assignments snapshot"); got != snapshots {
		t.Errorf("%d snapshots of assignments were taken", got-snapshots)
	}
	if steps := r.target.steps(); len(steps) > 0 {
		t.Errorf("steps are %q", steps)
	}
	r.agrees("b1")
}
