package broker

import (
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
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
