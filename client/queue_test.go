package client

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/wire"
)

// TestIDRing compares the ring with a map.
func TestIDRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := idRing[uint64]{oldest: 5, next: 5}
		model := map[uint64]*uint64{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3, 4:
				v := q.next
				model[v] = &v
				q.push(&v)
			case 9:
				all := q.takeAll()
				if len(all) != len(model) {
					t.Fatalf("took %d of %d", len(all), len(model))
				}
				for i, v := range all {
					if model[*v] != v || i > 0 && *all[i-1] >= *v {
						t.Fatalf("took %d at %d", *v, i)
					}
				}
				clear(model)
			default:
				id := rapid.Uint64Range(0, q.next+3).Draw(t, "id")
				if got := q.take(id); got != model[id] {
					t.Fatalf("take %d: %v, want %v", id, got, model[id])
				}
				delete(model, id)
			}
			first := q.first()
			for id := q.oldest; id < q.next; id++ {
				if model[id] != nil {
					if first != model[id] || id != q.oldest {
						t.Fatalf("first is not %d", id)
					}
					break
				}
			}
			if len(model) == 0 && (q.span() != 0 || first != nil) {
				t.Fatalf("empty, but the span is %d", q.span())
			}
		}
	})
}

// TestDroppedRecordsAreCounted: whatever the policy drops, what comes out
// and the gaps before it add up to what went in.
func TestDroppedRecordsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := BufferPolicy(rapid.IntRange(int(DropNew), int(DropOld)).Draw(t, "policy"))
		capacity := rapid.IntRange(1, 5).Draw(t, "capacity")
		var stats subscriptionCounters
		q := newBatchQueue(new(bufferPool), capacity, policy, &stats)
		ctx := context.Background()
		const shards = 2
		var at, in, out, last [shards]uint64
		take := func() {
			item, err := q.take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			shard := item.batch.Shard
			if item.batch.BaseOffset < last[shard] {
				t.Fatalf("shard %d went back to %d", shard, item.batch.BaseOffset)
			}
			last[shard] = item.batch.BaseOffset + uint64(item.batch.Len())
			out[shard] += uint64(item.batch.Len()) + item.batch.Gap
			q.recycle(item)
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") && len(q.items) > 0 {
				take()
				continue
			}
			shard := rapid.IntRange(0, shards-1).Draw(t, "shard")
			n := rapid.IntRange(1, 4).Draw(t, "records")
			gap := uint64(rapid.IntRange(0, 2).Draw(t, "gap"))
			item := q.blank()
			at[shard] += gap
			item.batch = Batch{Shard: uint32(shard), HasOffset: true, BaseOffset: at[shard], Gap: gap,
				events: wire.EventBatch{Shared: true, Block: wire.AppendBlock(nil, make([][]byte, n)...)}}
			item.live = len(q.items) >= capacity || rapid.Bool().Draw(t, "live")
			if len(q.items) >= capacity && policy == DropOld && !anyLive(q) {
				continue // it would wait, with nobody to take
			}
			at[shard] += uint64(n)
			in[shard] += uint64(n) + gap
			if err := q.put(ctx, item); err != nil {
				t.Fatal(err)
			}
			if len(q.items) > capacity {
				t.Fatalf("%d batches in a queue of %d", len(q.items), capacity)
			}
		}
		for len(q.items) > 0 {
			take()
		}
		for shard := range shards {
			if out[shard]+q.missing[uint32(shard)] != in[shard] {
				t.Fatalf("shard %d: %d out, %d missing, %d in", shard, out[shard], q.missing[uint32(shard)], in[shard])
			}
		}
	})
}

func anyLive(q *batchQueue) bool {
	for _, item := range q.items {
		if item.live {
			return true
		}
	}
	return false
}

// TestBufferedSubscriptionAccounts: with a dropping buffer and a reader that
// does not read, history waits and live records are dropped and counted.
func TestBufferedSubscriptionAccounts(t *testing.T) {
	const history, live = 50, 200
	for _, policy := range []BufferPolicy{DropNew, DropOld, Block} {
		p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
			e := s.events(durableAt(0, history))
			for i := range uint64(history) {
				b := wire.EventBatch{SubscriptionID: e.id, HasOffsets: true, BaseOffset: i, Block: block(fmt.Sprint(i))}
				e.Write(b.Append(nil))
			}
			for i := uint64(history); i < history+live; i++ {
				e.batch(i, 0, fmt.Sprint(i))
			}
			e.CloseWrite()
		})
		c := dial(t, []string{p.addr()})
		sub, err := c.Subscribe(testContext(t), "s", Buffer(8, policy), From(Earliest()))
		if err != nil {
			t.Fatal(err)
		}
		var got, lost uint64
		for ev, err := range sub.Events(testContext(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if got < history && ev.Offset != got {
				t.Fatalf("policy %d: history has a hole before %d", policy, ev.Offset)
			}
			got++
			lost += ev.Gap
			if got == history {
				eventually(t, "the broker has sent everything", func() bool {
					sub.queue.mu.Lock()
					defer sub.queue.mu.Unlock()
					return policy == Block || len(sub.queue.items) > 0 && sub.queue.items[len(sub.queue.items)-1].err != nil
				})
			}
		}
		st := sub.Stats()
		tail := sub.queue.missing[0]
		if got+lost+tail != history+live || st.Dropped != lost+tail {
			t.Errorf("policy %d: %d read, %d lost, %d lost at the end, stats %+v", policy, got, lost, tail, st)
		}
		if (policy == Block) != (st.Dropped == 0) {
			t.Errorf("policy %d dropped %d", policy, st.Dropped)
		}
		sub.Close()
	}
}
