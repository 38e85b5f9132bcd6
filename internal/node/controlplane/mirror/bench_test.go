package mirror

import (
	"context"
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// BenchmarkPass is two passes of a broker that leads 30,000 shards: one stream is
// made, and then its shard is assigned.
func BenchmarkPass(b *testing.B) {
	const streams, shards = 10_000, 3
	s := memory.Open(memory.Options{Limits: store.Limits{ChangesKept: 2 * streams * shards}})
	b.Cleanup(func() { s.Close() })
	r := newRigOn(b, s, "b1")
	r.mirror.o.Target = silent{}
	r.node("b1")
	r.tenant("t")
	for n := range streams {
		st := r.newStream("t", fmt.Sprintf("s%05d", n))
		st.Shards = shards
		must(b, s.CreateStream(b.Context(), st))
		r.assignAll(st)
	}
	r.pass()
	n := 0
	for b.Loop() {
		n++
		st := r.newStream("t", fmt.Sprintf("late%05d", n))
		st.Shards = 1
		must(b, s.CreateStream(b.Context(), st))
		r.pass()
		r.assignAll(st)
		r.pass()
	}
}

// assignAll places all shards of a stream on b1.
func (r *rig) assignAll(s model.Stream) {
	r.t.Helper()
	token, err := r.store.PlacementToken(r.t.Context())
	must(r.t, err)
	var puts []store.Put
	for n := range s.Shards {
		puts = append(puts, store.Put{Assignment: model.Assignment{
			ShardKey: shardOf(s, n), Leader: "b1", Replicas: []string{}, State: model.Assigning,
		}})
	}
	_, err = r.store.PutAssignmentsIf(r.t.Context(), puts, token)
	must(r.t, err)
}

// silent is a target that takes everything.
type silent struct{}

func (silent) AddTenant(string) error                              { return nil }
func (silent) RemoveTenant(string) error                           { return nil }
func (silent) AddNamespace(model.NamespaceKey) error               { return nil }
func (silent) RemoveNamespace(model.NamespaceKey) error            { return nil }
func (silent) AddStream(model.Stream) error                        { return nil }
func (silent) RemoveStream(model.StreamKey) error                  { return nil }
func (silent) AddCache(model.Cache) error                          { return nil }
func (silent) RemoveCache(model.CacheKey) error                    { return nil }
func (silent) Purge(context.Context, model.Tombstone) (int, error) { return 0, nil }
func (silent) Assign(model.ShardKey, uint64) error                 { return nil }
func (silent) Unassign(model.ShardKey, uint64, string) error       { return nil }
func (silent) Release(model.ShardKey, string) error                { return nil }
