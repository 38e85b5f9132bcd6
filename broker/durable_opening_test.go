package broker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

func shardDir(name string, shard uint32) string {
	return storage.DirName(storage.Key{Tenant: testTenant, Namespace: testNamespace, Name: name, Shard: shard})
}

// A shard whose log is damaged is refused by name, file and position; the
// others serve, and the broker counts it.
func TestDamagedShardIsRefused(t *testing.T) {
	disk := fstest.New(1)
	d := openDurable(t, disk, root, manySegments(), Config{})
	for _, sh := range d.durable("s", 3) {
		d.fill(sh, 500, 3)
	}
	d.close()
	dir := root + "/" + shardDir("s", 1)
	names, err := disk.List(dir)
	d.must(err)
	first := ""
	for _, n := range names {
		if strings.HasSuffix(n, ".log") && (first == "" || n < first) {
			first = n
		}
	}
	d.must(disk.FlipBit(dir+"/"+first, 8*70)) // in the first batch's header
	log := manySegments()
	log.VerifyAll = true
	d = openDurable(t, disk, root, log, Config{})
	shards := d.durable("s", 3)
	d.must(d.Ready(t.Context()))
	if o := d.Opening(); o != (Opening{Shards: 3, Refused: 1}) {
		t.Fatalf("%+v", o)
	}
	var unavailable *UnavailableError
	var damage *segment.CorruptionError
	check := func(what string, err error) {
		t.Helper()
		if !errors.As(err, &unavailable) || unavailable.Reason != stream.Failed || !errors.As(err, &damage) || !strings.Contains(damage.Path, first) || damage.Position <= 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("publish", d.send(shards[1], batchOf("x")).Err)
	_, err = shards[1].Subscribe(t.Context(), stream.SubscribeOptions{})
	check("subscribe", err)
	_, err = shards[1].Read(t.Context(), stream.ReadOptions{})
	check("read", err)
	_, _, err = shards[1].OffsetForTime(t.Context(), 0)
	check("offset for time", err)
	_, err = shards[1].State(t.Context(), nil)
	check("state", err)
	check("status", shards[1].Status().Err)
	for _, i := range []int{0, 2} {
		if at := d.sent(shards[i], batchOf("x")); at != 500 {
			t.Errorf("shard %d: offset %d", i, at)
		}
	}
	if st := d.Stats(); st.InflightBytes != 0 || st.Publish.Busy != 0 {
		t.Errorf("%+v", st)
	}
}

// While a shard's log is being opened, publishes wait in its lane, readers as
// long as their context lets them, and other shards serve.
func TestRequestsWaitForTheLog(t *testing.T) {
	disk := fstest.NewFaults(fstest.New(1))
	d := openDurable(t, disk, root, syncing(), Config{})
	gate := disk.Block(fstest.OpCreate, shardDir("s", 0))
	shards := d.durable("s", 2)
	<-gate.Arrived()
	var done outcomes
	for i := range 10 {
		d.must(d.Publish(t.Context(), shards[0], d.id, numberedBatch(uint64(i), 1), Fail, &done))
	}
	d.sent(shards[1], batchOf("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var unavailable *UnavailableError
	if _, err := shards[0].Subscribe(ctx, stream.SubscribeOptions{}); !errors.As(err, &unavailable) || unavailable.Reason != stream.Opening || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if o := d.Opening(); o != (Opening{Shards: 2, Opening: 1}) {
		t.Fatalf("%+v", o)
	}
	if st := shards[0].Status(); st.State != stream.BeingOpened || len(done.all()) != 0 {
		t.Fatalf("%+v", st)
	}
	if err := d.Ready(ctx); err != context.Canceled {
		t.Fatal(err)
	}
	waiting := make(chan *stream.Subscription)
	go func() {
		sub, err := shards[0].Subscribe(t.Context(), stream.SubscribeOptions{Start: stream.Earliest()})
		if err != nil {
			t.Error(err)
		}
		waiting <- sub
	}()
	disk.Clear()
	gate.Open()
	sub := <-waiting
	defer sub.Close()
	d.must(follow(t, sub).until(10))
	d.must(d.Ready(t.Context()))
	if o := d.Opening(); o != (Opening{Shards: 2}) {
		t.Fatalf("%+v", o)
	}
}

// A removed stream answers all it had accepted with its cause, one that is
// being opened too, and can be registered again with what it holds on disk.
func TestDurableRemoval(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	d.fill(sh, 10, 1)
	gate := disk.Block(fstest.OpSync, shardDir("s", 0))
	var done outcomes
	for i := range 20 {
		d.must(d.Publish(t.Context(), sh, d.id, numberedBatch(10+uint64(i), 1), Fail, &done))
	}
	<-gate.Arrived()
	sub := d.subscribeAt(sh, stream.SubscribeOptions{})
	d.must(d.RemoveStream(fullName("s")))
	if _, err := sub.Next(t.Context()); err != stream.ErrRemoved {
		t.Fatal(err)
	}
	if err := d.Publish(t.Context(), sh, d.id, batchOf("x"), Fail, nil); err != stream.ErrRemoved {
		t.Fatal(err)
	}
	again := d.durable("s", 1)[0] // its log opens when the other is closed
	d.must(d.durable("else", 1)[0].Ready(t.Context()))
	if st := again.Status(); st.State != stream.BeingOpened {
		t.Fatalf("%+v beside a log that is not closed", st)
	}
	disk.Clear()
	gate.Open()
	eventually(t, "all are answered", func() bool { return len(done.all()) == 20 })
	acked := uint64(10)
	for i, r := range done.all() {
		switch {
		case r.Err == nil && r.Offset == 10+uint64(i):
			acked++
		case r.Err != stream.ErrRemoved:
			t.Errorf("publish %d: %+v", i, r)
		}
	}
	if n := uint64(len(readAll(t, again, 0))); n != acked {
		t.Errorf("%d records, %d acked", n, acked)
	}
	eventually(t, "the lanes are free", func() bool { return d.Stats().Publish.Busy == 0 })
	if st := d.Stats(); st.InflightBytes != 0 {
		t.Errorf("%+v", st)
	}

	opening := disk.Block(fstest.OpCreate, shardDir("other", 0))
	other := d.durable("other", 1)[0]
	<-opening.Arrived()
	heard := make(awaited, 1)
	d.must(d.Publish(t.Context(), other, d.id, batchOf("x"), Fail, heard))
	d.must(d.RemoveStream(fullName("other")))
	disk.Clear()
	opening.Open()
	if r := heard.wait(t); r.Err != stream.ErrRemoved {
		t.Fatalf("%+v", r)
	}
	if _, err := other.Read(t.Context(), stream.ReadOptions{}); err != stream.ErrRemoved {
		t.Fatal(err)
	}
}

// Retention of a stream reaches its open logs, falls back to the broker's
// bound by bound, and survives a change while the log is being opened.
func TestRetentionReachesOpenLogs(t *testing.T) {
	cfg := Config{Streams: stream.Config{Retention: stream.Retention{MaxBytes: 20_000, Interval: time.Hour}}}
	d, disk := inMemory(t, manySegments(), cfg)
	bytes := func(sh *stream.Shard, name string) int64 {
		t.Helper()
		log, err := d.store.OpenLog(t.Context(), storage.Streams, storage.Key{Tenant: testTenant, Namespace: testNamespace, Name: name}, storage.LogOptions{})
		d.must(err)
		d.must(log.EnforceRetention())
		return sh.Status().Bytes
	}
	sh := d.durable("s", 1)[0]
	d.fill(sh, 3000, 10)
	if n := bytes(sh, "s"); n > 20_000+4096 {
		t.Errorf("%d bytes under the broker's bound", n)
	}
	d.must(d.SetStreamRetention(fullName("s"), stream.Retention{MaxBytes: 9000}))
	if n := bytes(sh, "s"); n > 9000+4096 {
		t.Errorf("%d bytes under the stream's bound", n)
	}
	d.must(d.AddStream(fullName("s"), StreamOptions{Durable: true, Retention: stream.Retention{MaxAge: time.Hour}}))
	if s, _ := d.Stream(testTenant, testNamespace, "s"); s.Options().Retention != (stream.Retention{MaxAge: time.Hour}) {
		t.Errorf("%+v", s.Options())
	}
	gate := disk.Block(fstest.OpCreate, shardDir("late", 0))
	late := d.durable("late", 1)[0]
	<-gate.Arrived()
	d.must(d.SetStreamRetention(fullName("late"), stream.Retention{MaxBytes: 9000}))
	disk.Clear()
	gate.Open()
	d.fill(late, 3000, 10)
	if n := bytes(late, "late"); n > 9000+4096 {
		t.Errorf("%d bytes, the bound was set while the log was being opened", n)
	}
	d.shard("memory")
	if err := d.SetStreamRetention(fullName("memory"), stream.Retention{MaxBytes: 1}); !errors.As(err, new(*NeedsLogError)) {
		t.Error(err)
	}
	if err := d.SetStreamRetention(fullName("none"), stream.Retention{}); !errors.As(err, new(*NotFoundError)) {
		t.Error(err)
	}
}

// A log that could not be opened because the disk was full is tried again when
// somebody asks, once a second at most; a damaged one is not.
func TestRefusedLogIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d, disk := inMemory(t, syncing(), Config{})
		full := disk.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpCreate}, Path: shardDir("s", 0), Err: fstest.ErrNoSpace})
		sh := d.durable("s", 1)[0]
		d.must(d.Ready(t.Context()))
		var unavailable *UnavailableError
		for range 50 {
			if r := d.send(sh, batchOf("x")); !errors.As(r.Err, &unavailable) || unavailable.Reason != stream.Failed {
				t.Fatalf("%+v", r)
			}
		}
		if n := full.Hits(); n != 1 {
			t.Fatalf("tried %d times in no time", n)
		}
		full.Stop()
		time.Sleep(2 * time.Second)
		if r := d.send(sh, batchOf("x")); !errors.As(r.Err, &unavailable) {
			t.Fatalf("%+v", r)
		}
		synctest.Wait()
		if at := d.sent(sh, batchOf("x")); at != 0 {
			t.Fatalf("offset %d", at)
		}
		if o := d.Opening(); o != (Opening{Shards: 1}) {
			t.Fatalf("%+v", o)
		}
	})
}
