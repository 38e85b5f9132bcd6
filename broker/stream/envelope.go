package stream

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// envelopeOverhead is what an envelope costs beside its buffer, rounded up.
const envelopeOverhead = 256

// Meta describes a batch.
type Meta struct {
	// BaseOffset is the offset of the first record.
	BaseOffset uint64
	// Count is the number of records.
	Count int
	// PayloadBytes is the sum of the records' lengths.
	PayloadBytes int
	// Skipped is how many offsets just before the batch hold no record that
	// is ever delivered.
	Skipped uint64
	// Publisher is who published the batch; empty where it is not recorded.
	Publisher string
	// TimestampMicros is when the batch was appended; 0 where that is not
	// recorded.
	TimestampMicros uint64
}

// An Envelope is one batch as every subscriber shares it: immutable once it is
// applied, reference counted, in one pooled buffer of headroom and block.
//
// Whoever holds a [Piece] of it may read it until the piece is released. A
// forgotten release leaves the memory to the collector; a second release of
// the same piece panics.
type Envelope struct {
	// state is generation<<32 | references. The generation rises each time
	// the envelope goes back to the pool, so that a stale release is caught
	// even when the envelope has a new life by then.
	state atomic.Uint64

	hub   *Hub
	meta  Meta
	made  time.Time
	has   Shape   // optional fields this batch can fill
	buf   *buffer // headroom, then the block
	block []byte

	// placed is 1 + the shape of frame, which is the block with its head in
	// the headroom; 0 while the headroom is free.
	placed atomic.Uint32
	frame  []byte

	mu     sync.Mutex // guards encoding
	others []encoded  // frames of further shapes
}

// encoded is a frame that needed a buffer of its own.
type encoded struct {
	shape Shape
	buf   *buffer
}

// NewEnvelope copies a record block (u32 count, then count times u32 length
// and bytes; well-formed, the caller has checked) and describes it. The caller
// owns one reference.
func (h *Hub) NewEnvelope(block []byte, m Meta) *Envelope {
	e := h.pool.getEnvelope()
	e.hub = h
	e.buf = h.pool.get(h.headroom + len(block))
	e.block = e.buf.bytes[h.headroom:]
	copy(e.block, block)
	e.meta = m
	e.made = h.clock.Now()
	e.describe()
	e.state.Add(1)
	return e
}

// describe derives from meta which fields the batch can fill. The envelope is
// not shared yet.
func (e *Envelope) describe() {
	e.has = WithOffsets
	if e.meta.Skipped > 0 {
		e.has |= WithSkipped
	}
	if e.meta.Publisher != "" {
		e.has |= WithPublisher
	}
	if e.meta.TimestampMicros > 0 {
		e.has |= WithTimestamps
	}
}

// Discard gives the creator's reference back when the envelope is not applied.
func (e *Envelope) Discard() { e.release() }

// Meta describes the batch.
func (e *Envelope) Meta() Meta { return e.meta }

// BaseOffset is the offset of the first record.
func (e *Envelope) BaseOffset() uint64 { return e.meta.BaseOffset }

// Count is the number of records.
func (e *Envelope) Count() int { return e.meta.Count }

// PayloadBytes is the sum of the records' lengths.
func (e *Envelope) PayloadBytes() int { return e.meta.PayloadBytes }

// Made is when the batch was accepted, for latency figures.
func (e *Envelope) Made() time.Time { return e.made }

// Block is the record block: u32 count, then the records. Read only.
func (e *Envelope) Block() []byte { return e.block }

// Size is what the envelope keeps in memory, in bytes, without frames of a
// second shape.
func (e *Envelope) Size() int64 { return int64(cap(e.buf.bytes)) + envelopeOverhead }

// end is the offset after the last record.
func (e *Envelope) end() uint64 { return e.meta.BaseOffset + uint64(e.meta.Count) }

// Frame is the batch's event frame with those of the fields of s that the
// batch can fill. It is encoded on first demand, once for all subscribers, and
// valid as long as the caller's piece. Read only.
func (e *Envelope) Frame(s Shape) []byte {
	s &= e.has
	if e.placed.Load() == uint32(s)+1 {
		return e.frame
	}
	return e.encode(s)
}

func (e *Envelope) encode(s Shape) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.placed.Load() == uint32(s)+1 {
		return e.frame
	}
	for _, f := range e.others {
		if f.shape == s {
			return f.buf.bytes
		}
	}
	e.hub.counters.encodes.Add(1)
	if s&WithTimestamps != 0 {
		buf := e.hub.pool.get(e.hub.headroom + len(e.block))
		return e.keep(s, buf, e.hub.cfg.Encoder.AppendFrame(buf.bytes[:0], e, s))
	}
	if e.placed.Load() != 0 { // the headroom is taken
		buf := e.hub.pool.get(e.hub.headroom + len(e.block))
		head := e.hub.cfg.Encoder.AppendHead(buf.bytes[:0], e, s)
		return e.keep(s, buf, append(head, e.block...))
	}
	headroom := e.buf.bytes[:0:e.hub.headroom]
	head := e.hub.cfg.Encoder.AppendHead(headroom, e, s)
	if len(head) > cap(headroom) {
		buf := e.hub.pool.get(len(head) + len(e.block))
		return e.keep(s, buf, append(append(buf.bytes[:0], head...), e.block...))
	}
	start := cap(headroom) - len(head)
	copy(e.buf.bytes[start:], head)
	e.frame = e.buf.bytes[start:]
	e.placed.Store(uint32(s) + 1)
	return e.frame
}

// keep files a frame that was appended to buf, or outgrew it.
func (e *Envelope) keep(s Shape, buf *buffer, frame []byte) []byte {
	if cap(frame) != cap(buf.bytes) {
		e.hub.pool.put(buf)
		buf = &buffer{class: -1}
	}
	buf.bytes = frame
	e.others = append(e.others, encoded{s, buf})
	return frame
}

// records is the bytes of the records from index first on.
func (e *Envelope) records(first int) []byte {
	b := e.block[4:]
	for range first {
		b = b[4+binary.BigEndian.Uint32(b):]
	}
	return b
}

// retain adds n references to one the caller holds.
func (e *Envelope) retain(n int) { e.state.Add(uint64(n)) }

func (e *Envelope) generation() uint32 { return uint32(e.state.Load() >> 32) }

// release gives one reference back.
func (e *Envelope) release() { e.releaseOf(e.generation()) }

// releaseOf gives back a reference taken in the given generation.
func (e *Envelope) releaseOf(generation uint32) {
	state := e.state.Add(^uint64(0))
	if uint32(state>>32) != generation || uint32(state) == 1<<32-1 {
		e.state.Add(1) // it was somebody else's, or nobody's
		panic("envelope released twice")
	}
	if uint32(state) == 0 {
		e.recycle()
	}
}

func (e *Envelope) recycle() {
	p := e.hub.pool
	p.put(e.buf)
	for i, f := range e.others {
		p.put(f.buf)
		e.others[i] = encoded{}
	}
	e.others = e.others[:0]
	e.buf, e.block, e.frame = nil, nil, nil
	e.meta = Meta{}
	e.placed.Store(0)
	e.state.Store(uint64(e.generation()+1) << 32)
	p.putEnvelope(e)
}
