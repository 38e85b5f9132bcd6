package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedClock is a clock that stands where it is put.
type fixedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fixedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fixedClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// blockOf is the record block of the given payloads.
func blockOf(payloads ...string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payloads)))
	for _, p := range payloads {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

// payloadsOf reads count records back.
func payloadsOf(t testing.TB, records []byte, count int) []string {
	t.Helper()
	payloads := make([]string, 0, count)
	for len(records) > 0 {
		n := binary.BigEndian.Uint32(records)
		payloads = append(payloads, string(records[4:4+n]))
		records = records[4+n:]
	}
	if len(payloads) != count {
		t.Errorf("%d records, want %d", len(payloads), count)
	}
	return payloads
}

// numbered is a batch of n records that name their offsets, from first on.
func numbered(first uint64, n int) ([]byte, Meta) {
	payloads := make([]string, n)
	size := 0
	for i := range payloads {
		payloads[i] = fmt.Sprintf("#%d", first+uint64(i))
		size += len(payloads[i])
	}
	return blockOf(payloads...), Meta{Count: n, PayloadBytes: size}
}

const base = 1000 // first offset of the shards of newShard

func newShard(t testing.TB, cfg Config) *Shard {
	t.Helper()
	if cfg.OffsetBase == nil {
		cfg.OffsetBase = func(Name, uint32) uint64 { return base }
	}
	s, err := NewHub(cfg, &fixedClock{}).NewStream(Name{"t", "n", "s"}, Options{}, Owner{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Shard(0)
}

// settlement is a Waiter that counts.
type settlement struct{ n atomic.Int32 }

func (s *settlement) Settled() { s.n.Add(1) }

// publish claims and applies a batch of n numbered records.
func publish(t testing.TB, sh *Shard, n int, w Waiter) (waiting bool) {
	t.Helper()
	block, meta := numbered(sh.claimed, n)
	e := sh.hub.NewEnvelope(block, meta)
	if _, err := sh.Claim(e); err != nil {
		t.Errorf("claim: %v", err)
	}
	out, err := sh.Apply(e, w)
	if err != nil {
		t.Errorf("apply: %v", err)
	}
	return out.Waiting
}

// publishAll publishes batches of n records and waits for each to settle, as a
// lane does.
func publishAll(t testing.TB, sh *Shard, batches, n int) {
	for range batches {
		var s settlement
		if publish(t, sh, n, &s) {
			eventually(t, "the batch settles", func() bool { return s.n.Load() == 1 })
		}
	}
}

func subscribe(t testing.TB, sh *Shard, o SubscribeOptions) *Subscription {
	t.Helper()
	s, err := sh.Subscribe(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reader checks what a subscription delivers: offsets only rise, payloads
// belong to their offsets.
type reader struct {
	t    testing.TB
	sub  *Subscription
	next uint64 // expected offset if nothing is missing

	records, batches, missing uint64
}

func newReader(t testing.TB, sub *Subscription) *reader {
	return &reader{t: t, sub: sub, next: sub.StartOffset()}
}

func (r *reader) take(pieces []Piece) {
	for _, p := range pieces {
		if p.Offset() < r.next {
			r.t.Errorf("offset %d again, expected %d", p.Offset(), r.next)
		}
		r.missing += p.Offset() - r.next
		for i, got := range payloadsOf(r.t, p.Records(), p.Count()) {
			if want := fmt.Sprintf("#%d", p.Offset()+uint64(i)); got != want {
				r.t.Errorf("offset %d holds %q, want %q", p.Offset()+uint64(i), got, want)
			}
		}
		r.next = p.Offset() + uint64(p.Count())
		r.records += uint64(p.Count())
		r.batches++
		p.Release()
	}
}

// until reads on until the offset, which is not read, is next.
func (r *reader) until(offset uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for r.next < offset {
		pieces, err := r.sub.Next(ctx)
		if err != nil {
			r.t.Errorf("at %d of %d: %v", r.next, offset, err)
			return
		}
		r.take(pieces)
	}
}

// rest reads what is queued now.
func (r *reader) rest() {
	r.t.Helper()
	for {
		pieces, err := r.sub.Poll()
		if len(pieces) == 0 || err != nil {
			return
		}
		r.take(pieces)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Errorf("never: %s", what)
			return
		}
		time.Sleep(20 * time.Microsecond)
	}
}
