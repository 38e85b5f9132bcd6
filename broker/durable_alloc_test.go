//go:build !race

package broker

import (
	"strconv"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// round counts a window of answers.
type round struct {
	done chan struct{}
	left int
}

func (r *round) Complete(Result) {
	if r.left--; r.left == 0 {
		r.done <- struct{}{}
	}
}

func (r *round) Flush() {}

// A durable publish, its commit, fanout and answer allocate nothing that is
// not paid for by many.
func TestDurablePublishAllocatesNothing(t *testing.T) {
	for _, mode := range []shardlog.FsyncMode{shardlog.OnCommit, shardlog.None} {
		t.Run(mode.String(), func(t *testing.T) {
			d := openDurable(t, &discard{fstest.New(1)}, root, shardlog.Options{Fsync: mode}, Config{})
			sh := d.durable("s", 1)[0]
			sub := d.subscribeAt(sh, stream.SubscribeOptions{Policy: stream.Block})
			batch := sized(1000)
			batch.Publisher = "someone"
			const window = 64
			r := &round{done: make(chan struct{}, 1)}
			publish := func() {
				r.left = window
				for range window {
					if err := d.Publish(t.Context(), sh, d.id, batch, Fail, r); err != nil {
						t.Fatal(err)
					}
				}
				<-r.done
				for seen := 0; seen < window; {
					pieces, err := sub.Poll()
					if err != nil {
						t.Fatal(err)
					}
					for _, p := range pieces {
						seen++
						p.Release()
					}
				}
			}
			for range 100 {
				publish()
			}
			// The committer's goroutine and what the test's disk does for a
			// round are shared by the window.
			if n := testing.AllocsPerRun(200, publish); n > window/4 {
				t.Errorf("%v allocations for %d batches", n, window)
			}
		})
	}
}

// discard is a disk whose segments keep their sizes and no bytes, for counting
// what the broker does without what a disk in memory costs.
type discard struct{ *fstest.Mem }

func (d *discard) Create(name string) (fs.File, error) {
	f, err := d.Mem.Create(name)
	if err != nil {
		return nil, err
	}
	return &discardedFile{File: f}, nil
}

type discardedFile struct {
	fs.File
	mu   sync.Mutex
	size int64
}

func (f *discardedFile) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off < 4096 { // headers and small files
		if _, err := f.File.WriteAt(p, off); err != nil {
			return 0, err
		}
	}
	f.size = max(f.size, off+int64(len(p)))
	return len(p), nil
}

func (f *discardedFile) Sync() error { return nil }

// BenchmarkDurablePublish keeps a window of single records, or batches of 64,
// in flight on a real disk.
func BenchmarkDurablePublish(b *testing.B) {
	for _, c := range []struct {
		name            string
		records, window int
	}{{"1x64", 1, 64}, {"64x32", 64, 32}} {
		b.Run(c.name, func(b *testing.B) {
			d := openDurable(b, fs.OS(), b.TempDir()+"/data", syncing(), Config{})
			sh := d.durable("s", 1)[0]
			payloads := make([]string, c.records)
			for i := range payloads {
				payloads[i] = string(make([]byte, 256))
			}
			batch := batchOf(payloads...)
			slots := make(slots, c.window)
			b.SetBytes(int64(batch.PayloadBytes))
			b.ReportAllocs()
			for b.Loop() {
				slots <- struct{}{}
				if err := d.Publish(b.Context(), sh, d.id, batch, Fail, slots); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// slots are publishes that may be in flight.
type slots chan struct{}

func (s slots) Complete(Result) { <-s }

// answers counts publishes that are answered.
type answers struct{ *sync.WaitGroup }

func (a answers) Complete(Result) { a.Done() }

// replayOf replays a log of many batches again and again.
func replayOf(t testing.TB, records, batches int) (replay func()) {
	d := openDurable(t, fs.OS(), t.TempDir()+"/data", shardlog.Options{}, Config{Streams: stream.Config{RingRecords: 1}})
	sh := d.durable("s", 1)[0]
	payloads := make([]string, records)
	for i := range payloads {
		payloads[i] = string(make([]byte, 256))
	}
	batch := batchOf(payloads...)
	batch.Publisher = "someone"
	// All are answered before the first replay: none comes live, where a full
	// queue may drop it.
	var answered sync.WaitGroup
	answered.Add(batches)
	for range batches {
		if err := d.Publish(t.Context(), sh, d.id, batch, Backpressure, answers{&answered}); err != nil {
			t.Fatal(err)
		}
	}
	answered.Wait()
	return func() {
		sub, err := sh.Subscribe(t.Context(), stream.SubscribeOptions{Start: stream.Earliest()})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		for left := records * batches; left > 0; {
			pieces, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pieces {
				left -= p.Count()
				p.Release()
			}
		}
	}
}

func TestReplayAllocatesNothingPerBatch(t *testing.T) {
	const batches = 20_000
	replay := replayOf(t, 1, batches)
	replay()
	if n := testing.AllocsPerRun(5, replay); n > batches/100 {
		t.Errorf("%v allocations for %d batches", n, batches)
	}
}

func BenchmarkReplay(b *testing.B) {
	for _, records := range []int{1, 64} {
		b.Run(strconv.Itoa(records), func(b *testing.B) {
			const total = 64_000
			replay := replayOf(b, records, total/records)
			b.SetBytes(total * 256)
			b.ReportAllocs()
			for b.Loop() {
				replay()
			}
		})
	}
}
