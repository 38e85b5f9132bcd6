package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// crashShards are the shards of the stream that is crashed.
const crashShards = 2

// A publisher model: what it was told of every batch it sent to one shard.
type publisherModel struct {
	mu    sync.Mutex
	acked map[uint64]string // by offset
	sent  map[string]bool   // payloads whose outcome may be either
}

// told is the completion of one batch of records with unique payloads.
type told struct {
	m        *publisherModel
	payloads []string
	wait     *sync.WaitGroup
}

func (c told) Complete(r Result) {
	c.m.mu.Lock()
	if r.Err == nil {
		for i, p := range c.payloads {
			c.m.acked[r.Offset+uint64(i)] = p
		}
	}
	c.m.mu.Unlock()
	c.wait.Done()
}

// Power fails, or the process is killed, in the middle of publishing, at many
// moments and over several lives of one disk: what was acknowledged is there,
// at its offset; what is there was sent, once; numbered batches sent again by
// a publisher that does not know how they ended are there once.
func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	for seed := range uint64(25 * soak.Times()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crashCampaign(t, seed) })
	}
}

func crashCampaign(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	log := shardlog.Options{Fsync: shardlog.OnCommit, SegmentBytes: 1024 << rng.IntN(4), IndexSpacing: 256}
	disk := fstest.New(seed)
	journal := int64(-1) // each shard syncs its own files
	if seed%2 == 0 {
		journal = 16 << 10 << rng.IntN(4)
	}
	var models [crashShards]publisherModel
	for i := range models {
		models[i] = publisherModel{acked: map[uint64]string{}, sent: map[string]bool{}}
	}
	type numbered struct {
		seq     uint64
		payload string
	}
	var pending [crashShards]*numbered // sent, and not answered before the crash
	var next [crashShards]uint64
	for life := range 4 {
		d := openStore(t, disk, storage.Config{Root: root, Log: log, JournalBytes: journal}, small())
		all := d.durable("s", crashShards)
		for i, sh := range all {
			d.must(sh.Ready(t.Context()))
			checkReplay(t, fmt.Sprintf("seed %d, life %d, shard %d", seed, life, i), d, sh, &models[i])
		}
		var wait, writers sync.WaitGroup
		for i, sh := range all {
			m := &models[i]
			writers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(100*life+i)))
				for k := range 30 + rng.IntN(60) {
					payloads := make([]string, 1+rng.IntN(5))
					for p := range payloads {
						payloads[p] = fmt.Sprintf("%d.%d.%d.%d %s", life, i, k, p, string(make([]byte, rng.IntN(200))))
						m.mu.Lock()
						m.sent[payloads[p]] = true
						m.mu.Unlock()
					}
					wait.Add(1)
					if d.Publish(t.Context(), sh, d.id, batchOf(payloads...), Wait, told{m, payloads, &wait}) != nil {
						wait.Done()
						return
					}
				}
			})
			writers.Go(func() {
				for {
					if pending[i] == nil {
						pending[i] = &numbered{next[i], fmt.Sprintf("numbered %d %d", i, next[i])}
						m.mu.Lock()
						m.sent[pending[i].payload] = true
						m.mu.Unlock()
					}
					b := batchOf(pending[i].payload)
					b.Producer = Producer{Set: true, ID: uint64(i + 1), Sequence: pending[i].seq}
					r := d.send(sh, b)
					if r.Err != nil {
						if errors.As(r.Err, new(*RefusedError)) {
							t.Errorf("seed %d: sequence %d: %v", seed, pending[i].seq, r.Err)
						}
						return
					}
					m.mu.Lock()
					m.acked[r.Offset] = pending[i].payload
					m.mu.Unlock()
					pending[i] = nil
					if next[i]++; next[i]%20 == 0 {
						return
					}
				}
			})
		}
		over := make(chan struct{})
		go func() {
			writers.Wait()
			wait.Wait()
			close(over)
		}()
		for enough := ackedSoFar(&models) + rng.IntN(150); ackedSoFar(&models) < enough; {
			select {
			case <-over:
				enough = 0
			default:
				runtime.Gosched()
			}
		}
		if rng.IntN(4) == 0 {
			disk = disk.Kill()
		} else {
			disk = disk.Crash(rng.Uint64())
		}
		d.close()
		<-over
	}
}

// ackedSoFar is how many records are acknowledged.
func ackedSoFar(models *[crashShards]publisherModel) (n int) {
	for i := range models {
		models[i].mu.Lock()
		n += len(models[i].acked)
		models[i].mu.Unlock()
	}
	return n
}

// checkReplay compares what a subscription and pages deliver with a model.
func checkReplay(t *testing.T, when string, d *durableFixture, sh *stream.Shard, m *publisherModel) {
	t.Helper()
	_, tail := sh.Bounds()
	got := map[uint64]string{}
	seen := map[string]uint64{}
	for _, r := range readAll(t, sh, 0) {
		payload := string(r.Payload)
		got[r.Offset] = payload
		if !m.sent[payload] {
			t.Fatalf("%s: offset %d holds %q, which nobody sent", when, r.Offset, payload)
		}
		if at, twice := seen[payload]; twice {
			t.Fatalf("%s: %q is at %d and at %d", when, payload, at, r.Offset)
		}
		seen[payload] = r.Offset
	}
	for offset, payload := range m.acked {
		if got[offset] != payload {
			t.Fatalf("%s: %q was acknowledged at %d, where there is %q", when, payload, offset, got[offset])
		}
	}
	sub := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()})
	defer sub.Close()
	for next := uint64(0); next < tail; {
		pieces, err := sub.Next(t.Context())
		d.must(err)
		for _, p := range pieces {
			for _, payload := range payloads(p.Records()) {
				if got[next] != payload {
					t.Fatalf("%s: a replay has %q at %d, a page %q", when, payload, next, got[next])
				}
				next++
			}
			p.Release()
		}
	}
}
