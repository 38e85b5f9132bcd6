package stream

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// tagEncoder writes readable frames and counts how often.
type tagEncoder struct {
	headroom int
	calls    [shapeCount]atomic.Int32
}

func (c *tagEncoder) Headroom() int { return c.headroom }

func (c *tagEncoder) AppendHead(dst []byte, e *Envelope, s Shape) []byte {
	c.calls[s].Add(1)
	return fmt.Appendf(dst, "<%04b %d %d>", s, e.BaseOffset(), len(e.Block()))
}

func (c *tagEncoder) AppendFrame(dst []byte, e *Envelope, s Shape) []byte {
	c.calls[s].Add(1)
	m := e.Meta()
	return fmt.Appendf(dst, "<%04b timed %d>%s", s, m.TimestampMicros, bytes.Repeat(e.Block(), 3))
}

func (c *tagEncoder) want(e *Envelope, s Shape) []byte {
	if s&WithTimestamps != 0 {
		return fmt.Appendf(nil, "<%04b timed %d>%s", s, e.meta.TimestampMicros, bytes.Repeat(e.block, 3))
	}
	return fmt.Appendf(nil, "<%04b %d %d>%s", s, e.meta.BaseOffset, len(e.block), e.block)
}

func full(h *Hub, block []byte) *Envelope {
	return h.NewEnvelope(block, Meta{BaseOffset: 7, Count: 1, Skipped: 2, Publisher: "p", TimestampMicros: 3})
}

// Many subscribers ask for all shapes at once: each is encoded once, and all
// see the same bytes.
func TestFrameIsEncodedOncePerShape(t *testing.T) {
	for _, headroom := range []int{0, 5, 64} {
		enc := &tagEncoder{headroom: headroom}
		h := NewHub(Config{Encoder: enc}, &fixedClock{})
		for range 20 {
			for i := range enc.calls {
				enc.calls[i].Store(0)
			}
			before := h.Stats().Encodes
			e := full(h, blockOf("abc", "", "defg"))
			var readers sync.WaitGroup
			for r := range 12 {
				readers.Add(1)
				go func() {
					defer readers.Done()
					for i := range Shape(shapeCount) {
						s := (i + Shape(r)) % shapeCount
						if got, want := e.Frame(s), enc.want(e, s); !bytes.Equal(got, want) {
							t.Errorf("shape %04b: %q, want %q", s, got, want)
						}
						if !bytes.Equal(e.Block(), blockOf("abc", "", "defg")) {
							t.Error("encoding changed the block")
						}
					}
				}()
			}
			readers.Wait()
			for s := range enc.calls {
				if n := enc.calls[s].Load(); n != 1 {
					t.Fatalf("headroom %d: shape %04b encoded %d times", headroom, s, n)
				}
			}
			if n := h.Stats().Encodes - before; n != shapeCount {
				t.Fatalf("%d encodes counted, want %d", n, shapeCount)
			}
			e.Discard()
		}
	}
}

func TestFirstShapeIsWrittenBeforeTheBlockWithoutCopy(t *testing.T) {
	enc := &tagEncoder{headroom: 64}
	h := NewHub(Config{Encoder: enc}, &fixedClock{})
	e := full(h, blockOf("payload"))
	frame := e.Frame(WithOffsets)
	tail := frame[len(frame)-len(e.Block()):]
	if unsafe.SliceData(tail) != unsafe.SliceData(e.Block()) {
		t.Fatal("the first frame is a copy of the block")
	}
	other := e.Frame(0)
	if !bytes.Equal(frame, enc.want(e, WithOffsets)) || !bytes.Equal(other, enc.want(e, 0)) {
		t.Fatal("a second shape disturbed the first")
	}
}

// A field the batch has not makes no shape of its own.
func TestShapeWithoutTheBatchsFieldsIsThePlainOne(t *testing.T) {
	enc := &tagEncoder{headroom: 64}
	h := NewHub(Config{Encoder: enc}, &fixedClock{})
	e := h.NewEnvelope(blockOf("x"), Meta{Count: 1})
	plain := e.Frame(WithOffsets)
	asked := e.Frame(WithOffsets | WithSkipped | WithPublisher | WithTimestamps)
	if unsafe.SliceData(plain) != unsafe.SliceData(asked) || h.Stats().Encodes != 1 {
		t.Fatalf("%q and %q are two frames", plain, asked)
	}
}

func TestReleasedEnvelopeIsUsedAgain(t *testing.T) {
	enc := &tagEncoder{headroom: 64}
	h := NewHub(Config{Encoder: enc}, &fixedClock{})
	first := full(h, blockOf("first"))
	for s := range Shape(shapeCount) {
		first.Frame(s)
	}
	first.Discard()
	idle := h.Stats().PooledBytes
	second := h.NewEnvelope(blockOf("2nd"), Meta{BaseOffset: 9, Count: 1})
	if second != first || h.Stats().PooledBytes != idle-256 {
		t.Fatal("neither envelope nor buffer came back")
	}
	for s := range Shape(shapeCount) {
		if got, want := second.Frame(s), enc.want(second, s&WithOffsets); !bytes.Equal(got, want) {
			t.Fatalf("shape %04b: %q, want %q", s, got, want)
		}
	}
}

func TestSecondReleasePanics(t *testing.T) {
	sh := newShard(t, Config{})
	mustPanic := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		f()
	}
	sub := subscribe(t, sh, SubscribeOptions{})
	publish(t, sh, 1, nil)
	pieces, _ := sub.Poll()
	stale := pieces[0]
	stale.Release()
	sh.mu.Lock()
	sh.ring.clear() // the last reference
	sh.mu.Unlock()
	mustPanic("in the pool", stale.Release)

	e := sh.hub.NewEnvelope(blockOf("new life"), Meta{Count: 1})
	for e != stale.Envelope { // the stale one has not come out of the pool yet
		e = sh.hub.NewEnvelope(blockOf("new life"), Meta{Count: 1})
	}
	mustPanic("after the envelope has a new life", stale.Release)
	e.Discard()
	mustPanic("its own second release", e.Discard)
}

// Readers and the ring let go of envelopes while others are taken from the
// pool: nobody ever sees bytes of another batch.
func TestPooledEnvelopesUnderLoad(t *testing.T) {
	sh := newShard(t, Config{RingRecords: 4, Encoder: &tagEncoder{headroom: 16}})
	const subs, batches = 8, 400
	var readers sync.WaitGroup
	for i := range subs {
		sub := subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1 + i})
		readers.Add(1)
		go func() {
			defer readers.Done()
			r := newReader(t, sub)
			r.until(base + 3*batches)
			if r.missing != 0 {
				t.Errorf("%d records missing", r.missing)
			}
		}()
	}
	publishAll(t, sh, batches, 3)
	readers.Wait()
	sh.mu.Lock()
	sh.ring.clear()
	sh.mu.Unlock()
	if n := len(sh.hub.pool.envelopes); n == 0 || n > 64 {
		t.Fatalf("%d envelopes are idle in the end", n)
	}
}
