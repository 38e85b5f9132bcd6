package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/shardlog"
)

// What is published has its offset, publisher and time at a subscriber, in a
// page and after a restart, on memory and on a real directory.
func TestDurablePublish(t *testing.T) {
	for _, c := range []struct {
		name string
		fs   fs.FS
		dir  string
	}{{"memory", fstest.New(1), root}, {"real", fs.OS(), t.TempDir() + "/data"}} {
		for _, mode := range []shardlog.FsyncMode{shardlog.OnCommit, shardlog.Periodic, shardlog.None} {
			t.Run(fmt.Sprint(c.name, " ", mode), func(t *testing.T) {
				log := shardlog.Options{Fsync: mode, FsyncInterval: 1e9}
				dir := c.dir + mode.String()
				d := openDurable(t, c.fs, dir, log, Config{})
				sh := d.durable("s", 1)[0]
				sub := d.subscribeAt(sh, stream.SubscribeOptions{})
				batch := batchOf("#0", "#1", "#2")
				batch.Publisher = "alice"
				if first := d.sent(sh, batch); first != 0 {
					t.Fatalf("first offset %d", first)
				}
				if first := d.sent(sh, numberedBatch(3, 2)); first != 3 {
					t.Fatalf("second offset %d", first)
				}
				live := follow(t, sub)
				d.must(live.until(5))
				want := readAll(t, sh, 0)
				if len(want) != 5 || want[2].Publisher != "alice" || want[3].Publisher != "" || want[0].TimestampMicros == 0 {
					t.Fatalf("%+v", want)
				}
				d.close()

				d = openDurable(t, c.fs, dir, log, Config{})
				sh = d.durable("s", 1)[0]
				replay := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()}))
				d.must(replay.until(5))
				if got := readAll(t, sh, 0); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("after the restart %+v, before %+v", got, want)
				}
				if first := d.sent(sh, numberedBatch(5, 1)); first != 5 {
					t.Fatalf("offset after the restart: %d", first)
				}
			})
		}
	}
}

func (d *durableFixture) subscribeAt(sh *stream.Shard, o stream.SubscribeOptions) *stream.Subscription {
	d.t.Helper()
	sub, err := sh.Subscribe(d.t.Context(), o)
	d.must(err)
	d.t.Cleanup(sub.Close)
	return sub
}

// An empty payload is a record like any other (BR-16); a batch of none is
// answered and appends nothing.
func TestDurableEmptyPayloads(t *testing.T) {
	disk := fstest.New(1)
	d := openDurable(t, disk, root, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	sub := d.subscribeAt(sh, stream.SubscribeOptions{})
	want := []string{"", "a", "", "", "b", "", ""}
	for _, b := range []Batch{batchOf(""), batchOf("a", ""), batchOf("", "b"), batchOf("", "")} {
		d.sent(sh, b)
	}
	if r := d.send(sh, batchOf()); r.Err != nil || r.HasOffset {
		t.Fatalf("an empty batch: %+v", r)
	}
	var live []string
	for len(live) < len(want) {
		pieces, err := sub.Next(t.Context())
		d.must(err)
		for _, p := range pieces {
			live = append(live, payloads(p.Records())...)
			p.Release()
		}
	}
	check := func(what string, got []string) {
		t.Helper()
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	read := func(sh *stream.Shard) (got []string) {
		for _, r := range readAll(t, sh, 0) {
			if r.Payload == nil {
				t.Error("an empty payload reads as none")
			}
			got = append(got, string(r.Payload))
		}
		return got
	}
	check("live", live)
	check("read", read(sh))
	d.close()
	d = openDurable(t, disk, root, syncing(), Config{})
	check("after a restart", read(d.durable("s", 1)[0]))
}

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
	for range 20 * soak() {
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

// One round of the log sends the answers of a stream once.
func TestAnswersOfARoundLeaveTogether(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	d.sent(sh, batchOf("opens the log"))
	a, b := &peer{}, &peer{}
	gate := disk.Block(fstest.OpSync, ".log")
	d.must(d.Publish(t.Context(), sh, d.id, batchOf("holds the disk"), Fail, nil))
	<-gate.Arrived()
	const n = 50
	for range n {
		d.must(d.Publish(t.Context(), sh, d.id, batchOf("x"), Fail, answer{a}))
		d.must(d.Publish(t.Context(), sh, d.id, batchOf("x"), Fail, answer{b}))
	}
	disk.Clear()
	gate.Open()
	for _, p := range []*peer{a, b} {
		eventually(t, "all are sent", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.sent == n })
		if p.flushes != 1 {
			t.Errorf("%d answers left in %d writes", n, p.flushes)
		}
	}
}

// A peer counts how its answers are sent.
type peer struct {
	mu              sync.Mutex
	noted, sent     int
	flushes, failed int
}

func (p *peer) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushes++
	p.sent = p.noted
}

type answer struct{ *peer }

func (a answer) Flusher() Flusher { return a.peer }

func (a answer) Complete(r Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noted++
	if r.Err != nil {
		a.failed++
	}
}

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
	for seed := range uint64(5 * soak()) {
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
