package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/producer"
)

// A batch with a number is appended once, on a log across restarts too; in
// memory as long as the shard lives.
func TestIdempotentProducers(t *testing.T) {
	for _, durable := range []bool{true, false} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			disk := fstest.New(1)
			d := openDurable(t, disk, root, syncing(), Config{})
			var sh *stream.Shard
			open := func() {
				if durable {
					sh = d.durable("s", 1)[0]
				} else {
					sh = d.shard("s")
				}
			}
			open()
			numbered := func(seq uint64, payload string) Result {
				b := batchOf(payload)
				b.Producer = Producer{Set: true, ID: 7, Sequence: seq}
				return d.send(sh, b)
			}
			refused := func(seq uint64, payload string, want producer.Outcome) {
				t.Helper()
				var refused *RefusedError
				if r := numbered(seq, payload); !errors.As(r.Err, &refused) || refused.Verdict.Outcome != want {
					t.Errorf("sequence %d: %+v, want %v", seq, r, want)
				}
			}
			refused(1, "x", producer.Unknown)
			var offsets [3]uint64
			for seq := range uint64(3) {
				r := numbered(seq, fmt.Sprint(seq))
				d.must(r.Err)
				offsets[seq] = r.Offset
			}
			again := func() {
				t.Helper()
				for seq := range uint64(3) {
					r := numbered(seq, fmt.Sprint(seq))
					if r.Err != nil || !r.Duplicate || r.HasOffset != durable || r.HasOffset && r.Offset != offsets[seq] {
						t.Errorf("sequence %d again: %+v, first %d", seq, r, offsets[seq])
					}
				}
				refused(1, "other", producer.Reused)
				refused(9, "x", producer.Gap)
			}
			again()
			if durable {
				d.close()
				d = openDurable(t, disk, root, syncing(), Config{})
				open()
				again()
				if n := len(readAll(t, sh, 0)); n != 3 {
					t.Errorf("%d records", n)
				}
			}
			if r := numbered(3, "next"); r.Err != nil || r.Duplicate {
				t.Errorf("the next one: %+v", r)
			}
		})
	}
}

// A duplicate in flight behind its original hears what became of it.
func TestDuplicateWaitsForItsOriginal(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	d.must(sh.Ready(t.Context()))
	gate := disk.Block(fstest.OpSync, ".log")
	b := batchOf("once")
	b.Producer = Producer{Set: true, ID: 1}
	first, second := make(awaited, 1), make(awaited, 1)
	d.must(d.Publish(t.Context(), sh, d.id, b, Fail, first))
	d.must(d.Publish(t.Context(), sh, d.id, b, Fail, second))
	if len(first)+len(second) > 0 {
		t.Fatal("answered before the sync")
	}
	gate.Open()
	a, again := first.wait(t), second.wait(t)
	if a.Err != nil || again.Err != nil || a.Offset != again.Offset || a.Duplicate || !again.Duplicate {
		t.Fatalf("%+v, %+v", a, again)
	}
	if n := len(readAll(t, sh, 0)); n != 1 {
		t.Fatalf("%d records", n)
	}
}

func TestConditionalPublish(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	at := func(offset uint64) Result {
		b := batchOf("x", "y")
		b.Conditional, b.ExpectedOffset = true, offset
		return d.send(sh, b)
	}
	var mismatch *OffsetMismatchError
	if r := at(1); !errors.As(r.Err, &mismatch) || mismatch.Tail != 0 || mismatch.Expected != 1 {
		t.Fatalf("%+v", r)
	}
	for offset := uint64(0); offset < 6; offset += 2 {
		if r := at(offset); r.Err != nil || r.Offset != offset {
			t.Fatalf("%+v", r)
		}
	}
	if r := at(4); !errors.As(r.Err, &mismatch) || mismatch.Tail != 6 {
		t.Fatalf("%+v", r)
	}
	eventually(t, "no place is kept by what was refused", func() bool { return sh.Status().Pending == 0 })
	var needs *NeedsLogError
	memory := d.shard("memory")
	b := batchOf("x")
	b.Conditional = true
	if err := d.Publish(t.Context(), memory, d.id, b, Fail, nil); !errors.As(err, &needs) {
		t.Fatal(err)
	}
}

// Many writers compare and append: each offset goes to exactly one.
func TestConditionalPublishersRace(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	const writers, each = 4, 20
	var wait sync.WaitGroup
	won := make([][]uint64, writers)
	for w := range writers {
		wait.Go(func() {
			_, tail := sh.Bounds()
			for len(won[w]) < each {
				b := batchOf("x")
				b.Conditional, b.ExpectedOffset = true, tail
				r := d.send(sh, b)
				var mismatch *OffsetMismatchError
				switch {
				case r.Err == nil && r.Offset == tail:
					won[w] = append(won[w], tail)
					tail++
				case errors.As(r.Err, &mismatch):
					tail = mismatch.Tail
				default:
					t.Errorf("%+v", r)
					return
				}
			}
		})
	}
	wait.Wait()
	seen := map[uint64]bool{}
	for _, offsets := range won {
		for _, o := range offsets {
			if seen[o] {
				t.Errorf("offset %d was won twice", o)
			}
			seen[o] = true
		}
	}
	if n := len(readAll(t, sh, 0)); n != writers*each {
		t.Errorf("%d records", n)
	}
}

// Refused publishes in the middle of a pipeline cost only themselves, and the
// others are answered in order (BR-21).
func TestRefusalsInAPipeline(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	rng := rand.New(rand.NewPCG(1, 2))
	var next, sequence uint64
	for range 20 * soak.Times() {
		const n = 256
		bad := rng.IntN(n)
		kind := rng.IntN(4)
		results := make([]awaited, n)
		var refusedAt error
		for i := range n {
			results[i] = make(awaited, 1)
			b := numberedBatch(next, 1)
			b.Producer = Producer{Set: true, ID: 9, Sequence: sequence}
			if i == bad {
				switch kind {
				case 0:
					b.Producer.Sequence += 5
				case 1:
					b.Producer = Producer{}
					b.Conditional, b.ExpectedOffset = true, next+1000
				case 2:
					b.State = []StateChange{{Key: []byte("k")}}
					b.Block, b.Count = batchOf("a", "b").Block, 2
				case 3:
					other := d.conn.Identity("other", "x")
					if err := d.Publish(t.Context(), sh, other, b, Wait, results[i]); err != nil {
						refusedAt = err
					}
					other.Close()
					continue
				}
			} else {
				next++
				sequence++
			}
			if err := d.Publish(t.Context(), sh, d.id, b, Wait, results[i]); err != nil {
				if i != bad {
					t.Fatal(err)
				}
				refusedAt = err
			}
		}
		want := next - (n - 1)
		for i, w := range results {
			if i == bad {
				if refusedAt == nil && w.wait(t).Err == nil {
					t.Fatalf("kind %d was accepted", kind)
				}
				continue
			}
			if r := w.wait(t); r.Err != nil || r.Offset != want {
				t.Fatalf("kind %d at %d: publish %d: %+v, want offset %d", kind, bad, i, r, want)
			}
			want++
		}
	}
	if all := readAll(t, sh, 0); uint64(len(all)) != next {
		t.Fatalf("%d records, want %d", len(all), next)
	}
}
