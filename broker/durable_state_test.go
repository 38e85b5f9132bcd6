package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// An atomic commit delivers its event, and its keys can be read at once, after
// a restart, and after they were written again or deleted (wire 13).
func TestAtomicCommit(t *testing.T) {
	disk := fstest.New(1)
	d := openDurable(t, disk, root, manySegments(), Config{})
	sh := d.durable("s", 1)[0]
	sub := d.subscribeAt(sh, stream.SubscribeOptions{})
	model := map[string]string{}
	versions := map[string]uint64{}
	var last uint64
	commit := func(event string, changes ...StateChange) {
		t.Helper()
		b := batchOf(event)
		b.State = changes
		last = d.sent(sh, b)
		for _, c := range changes {
			if delete(model, string(c.Key)); !c.Delete {
				model[string(c.Key)], versions[string(c.Key)] = string(c.Value), last
			}
		}
	}
	check := func(when string) {
		t.Helper()
		for i := range 12 {
			key := fmt.Sprint("k", i)
			v, err := sh.State(t.Context(), []byte(key))
			want, ok := model[key]
			if err != nil || v.Found != ok || string(v.Value) != want || ok && v.Version != versions[key] || !v.HasAsOf || v.AsOf != last {
				t.Fatalf("%s: %s is %+v %v, want %q at %d as of %d", when, key, v, err, want, versions[key], last)
			}
		}
	}
	if v, err := sh.State(t.Context(), []byte("k0")); err != nil || v.Found || v.HasAsOf {
		t.Fatalf("%+v %v", v, err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		if rng.IntN(3) == 0 {
			d.sent(sh, batchOf("plain", "records"))
		}
		var changes []StateChange
		for range 1 + rng.IntN(3) {
			changes = append(changes, StateChange{
				Delete: rng.IntN(4) == 0, Key: fmt.Append(nil, "k", rng.IntN(10)), Value: []byte(strings.Repeat("v", rng.IntN(50))),
			})
		}
		commit(fmt.Sprint("event ", i), changes...)
		if i%20 == 0 {
			check("live")
		}
	}
	check("live")
	events := 0
	for events < 200 {
		pieces, err := sub.Next(t.Context())
		d.must(err)
		for _, p := range pieces {
			for _, payload := range payloads(p.Records()) {
				if payload == fmt.Sprint("event ", events) {
					events++
				} else if !strings.Contains("plain records", payload) {
					t.Fatalf("a subscriber got %q", payload)
				}
			}
			p.Release()
		}
	}
	d.close()
	d = openDurable(t, disk, root, manySegments(), Config{})
	sh = d.durable("s", 1)[0]
	check("after a restart")
	commit("more", StateChange{Key: []byte("k0"), Value: []byte("new")}, StateChange{Key: []byte("k1"), Delete: true})
	check("after a restart and a commit")

	if err := d.Publish(t.Context(), d.shard("memory"), d.id, Batch{Block: batchOf("x").Block, Count: 1, State: []StateChange{{Key: []byte("k")}}}, Fail, nil); !errors.As(err, new(*NeedsLogError)) {
		t.Fatal(err)
	}
	if _, err := d.shard("memory").State(t.Context(), nil); !errors.As(err, new(*NeedsLogError)) {
		t.Fatal(err)
	}
	two := batchOf("a", "b")
	two.State = []StateChange{{Key: []byte("k")}}
	if r := d.send(sh, two); r.Err != ErrCommitShape {
		t.Fatal(r.Err)
	}
}

// The first reader of a state builds it while commits go on; none is missed.
func TestStateIsBuiltUnderLoad(t *testing.T) {
	for seed := range uint64(5 * soak.Times()) {
		d, _ := inMemory(t, manySegments(), Config{Streams: stream.Config{PageBytes: 300}})
		sh := d.durable("s", 1)[0]
		commit := func(i int) {
			b := batchOf("event")
			b.State = []StateChange{{Key: fmt.Append(nil, "k", i%7), Value: fmt.Append(nil, i)}}
			d.sent(sh, b)
		}
		const before, during = 300, 100
		for i := range before {
			commit(i)
		}
		var wait sync.WaitGroup
		wait.Go(func() {
			for i := before; i < before+during; i++ {
				commit(i)
				v, err := sh.State(t.Context(), fmt.Append(nil, "k", i%7))
				if err != nil || string(v.Value) != fmt.Sprint(i) {
					t.Errorf("seed %d: commit %d was answered, and reads as %q %v", seed, i, v.Value, err)
				}
			}
		})
		wait.Go(func() {
			for range 20 {
				if _, err := sh.State(t.Context(), []byte("k0")); err != nil {
					t.Error(err)
				}
			}
		})
		wait.Wait()
		d.close()
	}
}

func TestReadPages(t *testing.T) {
	d, _ := inMemory(t, manySegments(), Config{})
	sh := d.durable("s", 1)[0]
	d.fill(sh, 500, 7)
	big := strings.Repeat("x", 1000)
	at := d.sent(sh, batchOf(big, big))
	for _, c := range []struct {
		o     stream.ReadOptions
		items int
		next  uint64
	}{
		{stream.ReadOptions{From: 0, MaxRecords: 10}, 10, 10},
		{stream.ReadOptions{From: 3, MaxRecords: 1}, 1, 4},
		{stream.ReadOptions{From: 100, End: 105}, 5, 105},
		{stream.ReadOptions{From: 100, MaxBytes: 12}, 3, 103},
		{stream.ReadOptions{From: at, MaxBytes: 1}, 1, at + 1},
		{stream.ReadOptions{From: at + 2}, 0, at + 2},
		{stream.ReadOptions{From: 5, End: 5}, 0, 5},
	} {
		page, err := sh.Read(t.Context(), c.o)
		if err != nil || len(page.Items) != c.items || page.Next != c.next {
			t.Errorf("%+v: %d items, next %d, %v; want %d and %d", c.o, len(page.Items), page.Next, err, c.items, c.next)
		}
	}
	var cursor *stream.CursorError
	if _, err := sh.Read(t.Context(), stream.ReadOptions{From: at + 3}); !errors.As(err, &cursor) || cursor.Reason != stream.InFuture || cursor.Available != at+2 {
		t.Error(err)
	}
	if _, err := d.shard("memory").Read(t.Context(), stream.ReadOptions{}); !errors.As(err, new(*NeedsLogError)) {
		t.Error(err)
	}
	all := readAll(t, sh, 0)
	offset, ok, err := sh.OffsetForTime(t.Context(), all[0].TimestampMicros)
	if err != nil || !ok || offset != 0 {
		t.Error(offset, ok, err)
	}
	if _, ok, err := sh.OffsetForTime(t.Context(), all[len(all)-1].TimestampMicros+1); err != nil || ok {
		t.Error(ok, err)
	}
}

func TestProducerIDs(t *testing.T) {
	bits := []uint64{0, 5, 6}
	f := newFixture(t, Config{Random: func() uint64 { b := bits[0]; bits = bits[1:]; return b }})
	if a, b := f.NewProducerID(), f.NewProducerID(); a != 5 || b != 6 {
		t.Fatal(a, b)
	}
	f = newFixture(t, Config{})
	if a, b := f.NewProducerID(), f.NewProducerID(); a == b || a == 0 {
		t.Fatal(a, b)
	}
}
