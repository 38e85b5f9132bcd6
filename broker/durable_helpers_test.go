package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

const root = "/felix"

// syncing are logs that answer after the sync; small ones with many segments.
func syncing() shardlog.Options { return shardlog.Options{Fsync: shardlog.OnCommit} }

func manySegments() shardlog.Options {
	return shardlog.Options{Fsync: shardlog.OnCommit, SegmentBytes: 4096, IndexSpacing: 512}
}

// A durableFixture is a broker with storage. It is closed before the test
// ends, or earlier to be opened again.
type durableFixture struct {
	*fixture
	store  *storage.Store
	closed sync.Once
}

// openDurable opens a store whose logs sync their own files, so that a test
// that holds or fails a shard's files does so to its commits.
func openDurable(t testing.TB, f fs.FS, dir string, log shardlog.Options, cfg Config) *durableFixture {
	t.Helper()
	return openStore(t, f, storage.Config{Root: dir, Log: log, JournalBytes: -1}, cfg)
}

func openStore(t testing.TB, f fs.FS, at storage.Config, cfg Config) *durableFixture {
	t.Helper()
	store, err := storage.Open(f, at, storage.Deps{Clock: testClock{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Storage = store
	d := &durableFixture{fixture: newFixture(t, cfg), store: store}
	t.Cleanup(d.close)
	return d
}

// inMemory is a broker on a memory disk.
func inMemory(t testing.TB, log shardlog.Options, cfg Config) (*durableFixture, *fstest.Faults) {
	t.Helper()
	disk := fstest.NewFaults(fstest.New(1))
	return openDurable(t, disk, root, log, cfg), disk
}

func (d *durableFixture) close() {
	d.closed.Do(func() {
		d.Close()
		// A disk that failed under the test fails the close too.
		_ = d.store.Close()
	})
}

// durable registers a durable stream and returns its shards.
func (d *durableFixture) durable(name string, shards uint32) []*stream.Shard {
	d.t.Helper()
	d.must(d.AddStream(fullName(name), StreamOptions{Durable: true, Shards: shards}))
	s, err := d.Stream(testTenant, testNamespace, name)
	d.must(err)
	all := make([]*stream.Shard, shards)
	for i := range all {
		all[i] = s.Shard(uint32(i))
	}
	return all
}

// send publishes and waits for the outcome.
func (d *durableFixture) send(sh *stream.Shard, batch Batch) Result {
	d.t.Helper()
	w := make(awaited, 1)
	if err := d.Publish(d.t.Context(), sh, d.id, batch, Wait, w); err != nil {
		return Result{Err: err}
	}
	return w.wait(d.t)
}

// sent is send that must succeed; it returns the offset.
func (d *durableFixture) sent(sh *stream.Shard, batch Batch) uint64 {
	d.t.Helper()
	r := d.send(sh, batch)
	if r.Err != nil || !r.HasOffset {
		d.t.Fatalf("publish: %+v", r)
	}
	return r.Offset
}

// awaited is a Completion somebody waits for.
type awaited chan Result

func (w awaited) Complete(r Result) { w <- r }

func (w awaited) wait(t testing.TB) Result {
	t.Helper()
	select {
	case r := <-w:
		return r
	case <-time.After(20 * time.Second):
		t.Fatal("a publish is not answered")
		return Result{}
	}
}

// numberedBatch is n records that say where they belong: "#offset".
func numberedBatch(first uint64, n int) Batch {
	payloads := make([]string, n)
	for i := range payloads {
		payloads[i] = fmt.Sprintf("#%d", first+uint64(i))
	}
	return batchOf(payloads...)
}

// fill publishes records numbered by their offsets, in batches of n, up to
// offset end.
func (d *durableFixture) fill(sh *stream.Shard, end uint64, n int) {
	d.t.Helper()
	var done outcomes
	_, next := sh.Bounds()
	sent := 0
	for ; next < end; sent++ {
		n := min(n, int(end-next))
		d.must(d.Publish(d.t.Context(), sh, d.id, numberedBatch(next, n), Backpressure, &done))
		next += uint64(n)
	}
	eventually(d.t, "all are committed", func() bool { return len(done.all()) == sent })
	for _, r := range done.all() {
		d.must(r.Err)
	}
}

// A follower checks what a subscription delivers: offsets only rise, and what
// offsets say is missing is added up.
type follower struct {
	t       testing.TB
	sub     *stream.Subscription
	next    uint64
	records uint64
	missing uint64
	pause   func()
}

func follow(t testing.TB, sub *stream.Subscription) *follower {
	return &follower{t: t, sub: sub, next: sub.StartOffset()}
}

func (f *follower) take(pieces []stream.Piece) {
	for _, p := range pieces {
		skipped := p.Envelope.Meta().Skipped
		if p.Offset() < f.next {
			f.t.Errorf("offset %d again, expected %d", p.Offset(), f.next)
		}
		if gap := p.Offset() - f.next; gap > skipped {
			f.missing += gap - skipped
		}
		for i, got := range payloads(p.Records()) {
			if want := fmt.Sprintf("#%d", p.Offset()+uint64(i)); got != want {
				f.t.Errorf("offset %d holds %q", p.Offset()+uint64(i), got)
			}
		}
		f.next = p.Offset() + uint64(p.Count())
		f.records += uint64(p.Count())
		p.Release()
		if f.pause != nil {
			f.pause()
		}
	}
}

// until reads until the offset, which is not read, is next; it returns why it
// could not.
func (f *follower) until(offset uint64) error {
	ctx, cancel := context.WithTimeoutCause(f.t.Context(), 20*time.Second, errors.New("nothing more came"))
	defer cancel()
	for f.next < offset {
		pieces, err := f.sub.Next(ctx)
		if err != nil {
			return fmt.Errorf("at %d of %d: %w", f.next, offset, err)
		}
		f.take(pieces)
	}
	return nil
}

func payloads(records []byte) (all []string) {
	for len(records) > 0 {
		n := binary.BigEndian.Uint32(records)
		all = append(all, string(records[4:4+n]))
		records = records[4+n:]
	}
	return all
}

// readAll reads the shard from an offset to its tail.
func readAll(t testing.TB, sh *stream.Shard, from uint64) (all []stream.Record) {
	t.Helper()
	for {
		page, err := sh.Read(t.Context(), stream.ReadOptions{From: from})
		if err != nil {
			t.Fatal(err)
		}
		if page.Next == from {
			return all
		}
		all = append(all, page.Items...)
		from = page.Next
	}
}
