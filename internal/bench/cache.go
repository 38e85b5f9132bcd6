package bench

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/client"
)

// cacheKeys is how many keys a cache run works on.
const cacheKeys = 1024

// Cache measures puts, then gets, with Concurrency workers that each have one
// request under way.
type Cache struct {
	Cache        string
	Total        uint64 // requests of each kind measured
	Warmup       uint64 // requests of each kind before that
	PayloadBytes int    // of a value
	Concurrency  int    // workers
}

// CacheResult is what Cache measured.
type CacheResult struct {
	Bench        string     `json:"bench"`
	Cache        string     `json:"cache"`
	Put          CachePhase `json:"put"`
	Get          CachePhase `json:"get"`
	Warmup       uint64     `json:"warmup"`
	Keys         int        `json:"keys"`
	PayloadBytes int        `json:"payload_bytes"`
	Concurrency  int        `json:"concurrency"`
	Loop         string     `json:"loop"`
}

// CachePhase is the part of a CacheResult about one kind of request.
type CachePhase struct {
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"`
	// Missing counts gets whose key was gone, evicted say.
	Missing        uint64    `json:"missing"`
	Refused        uint64    `json:"refused"`
	Seconds        float64   `json:"seconds"`
	Rate           float64   `json:"requests_per_second"`
	BytesPerSecond float64   `json:"bytes_per_second"`
	LatencyUS      Quantiles `json:"latency_us"`
}

func (b Cache) check() error {
	return check(
		bound{"total", b.Total, 1, maxMessages},
		bound{"warmup", b.Warmup, 0, maxMessages},
		bound{"payload-bytes", uint64(b.PayloadBytes), 0, maxPayload},
		bound{"concurrency", uint64(b.Concurrency), 1, maxConcurrency},
	)
}

// Run measures, and removes the keys it wrote. progress is told of requests
// answered.
func (b Cache) Run(ctx context.Context, c *client.Client, progress func(n uint64)) (CacheResult, error) {
	if err := b.check(); err != nil {
		return CacheResult{}, err
	}
	handle := c.Cache(b.Cache)
	keys := make([]string, cacheKeys)
	for i := range keys {
		keys[i] = "felix-bench-" + strconv.Itoa(i)
	}
	value := noise(b.PayloadBytes)
	put := func(ctx context.Context, at uint64, _ []byte) ([]byte, bool, error) {
		return value, true, handle.Put(ctx, keys[at%cacheKeys], value)
	}
	get := func(ctx context.Context, at uint64, scratch []byte) ([]byte, bool, error) {
		return handle.AppendGet(ctx, scratch[:0], keys[at%cacheKeys])
	}
	silent := func(uint64) {}
	result := CacheResult{
		Bench: "cache", Cache: b.Cache, Warmup: b.Warmup, Keys: cacheKeys,
		PayloadBytes: b.PayloadBytes, Concurrency: b.Concurrency, Loop: loopClosed,
	}
	defer func() {
		for _, key := range keys {
			if _, _, err := handle.Delete(ctx, key); err != nil {
				return // the run's own error tells more
			}
		}
	}()
	for _, step := range []struct {
		total    uint64
		request  cacheRequest
		into     *CachePhase
		progress func(uint64)
	}{
		{b.Warmup, put, nil, silent},
		{b.Total, put, &result.Put, progress},
		// All keys exist before the gets, however small the total.
		{cacheKeys, put, nil, silent},
		{b.Warmup, get, nil, silent},
		{b.Total, get, &result.Get, progress},
	} {
		phase, err := b.phase(ctx, step.total, step.request, step.progress)
		if err != nil {
			return CacheResult{}, err
		}
		if step.into != nil {
			*step.into = phase
		}
	}
	return result, nil
}

// A cacheRequest carries out the request number at. It returns the value that
// went over the wire, which may use scratch, and whether there was one.
type cacheRequest func(ctx context.Context, at uint64, scratch []byte) (value []byte, found bool, err error)

// phase has the workers carry out total requests between them.
func (b Cache) phase(ctx context.Context, total uint64, request cacheRequest, progress func(uint64)) (CachePhase, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := newStopwatch()
	var taken, done, missing, turnedAway, bytes atomic.Uint64
	var last latest
	times := make([]*recorder, b.Concurrency)
	var group sync.WaitGroup
	for i := range times {
		times[i] = newRecorder()
		group.Go(func() {
			var scratch []byte
			for ctx.Err() == nil {
				at := taken.Add(1) - 1
				if at >= total {
					return
				}
				sent := clock.now()
				value, found, err := request(ctx, at, scratch)
				now := clock.now()
				last.tell(now)
				switch {
				case err == nil:
					scratch = value
					times[i].record(now - sent)
					done.Add(1)
					bytes.Add(uint64(len(value)))
					if !found {
						missing.Add(1)
					}
				case refused(err):
					turnedAway.Add(1)
				default:
					cancel(err)
					return
				}
				progress(1)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return CachePhase{}, err
	}
	merged := newRecorder()
	for _, one := range times {
		merged.merge(one)
	}
	took := last.time()
	return CachePhase{
		Requests: done.Load(), Bytes: bytes.Load(), Missing: missing.Load(), Refused: turnedAway.Load(),
		Seconds: took.Seconds(), Rate: perSecond(done.Load(), took), BytesPerSecond: perSecond(bytes.Load(), took),
		LatencyUS: merged.quantiles(),
	}, nil
}

// makeKeys makes n routing keys.
func makeKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = strconv.AppendInt([]byte("key-"), int64(i), 10)
	}
	return keys
}
