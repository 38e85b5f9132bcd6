package session

import (
	"encoding/binary"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// A merge gathers batches of one record, neighbours in offset, into one event
// batch (broker 7.6). A publisher's own batch of several records travels whole
// instead, so that its frame is shared.
type merge struct {
	maxEvents int
	maxBytes  int
	delay     time.Duration

	block  []byte // u32 count, then the records
	count  int
	base   uint64
	bytes  int // payload bytes
	since  time.Time
	made   time.Time // of the oldest merged event not written yet
	loaded bool      // the previous batch found events behind its first
	meta   stream.Meta
}

func (m *merge) limit(cfg *Config) {
	m.maxEvents, m.maxBytes, m.delay = cfg.EventMaxEvents, cfg.EventMaxBytes, cfg.EventMaxDelay
	if cfg.SingleEvent {
		m.maxEvents, m.delay = 1, 0
	}
}

// within says whether a piece fits the limits of one frame as it is.
func (m *merge) within(p stream.Piece) bool {
	return p.Count() <= m.maxEvents && (p.Envelope.PayloadBytes() <= m.maxBytes || p.Count() == 1)
}

// takes says whether the piece is a single event small enough to merge.
func (m *merge) takes(p stream.Piece) bool {
	e := p.Envelope
	return e.Count() == 1 && m.maxEvents > 1 && e.PayloadBytes() <= m.maxBytes && e.Meta().Skipped == 0
}

// fits says whether p may join the batch in the making.
func (m *merge) fits(p stream.Piece) bool {
	if m.count == 0 {
		return true
	}
	meta := p.Envelope.Meta()
	return m.count < m.maxEvents && m.bytes+meta.PayloadBytes <= m.maxBytes &&
		meta.BaseOffset == m.base+uint64(m.count) &&
		meta.Publisher == m.meta.Publisher && meta.TimestampMicros == m.meta.TimestampMicros
}

func (m *merge) add(p stream.Piece, now func() time.Time) {
	if m.count == 0 {
		m.block = append(m.block[:0], 0, 0, 0, 0)
		m.meta = p.Envelope.Meta()
		m.base = m.meta.BaseOffset
		if m.made.IsZero() {
			m.made = p.Envelope.Made()
		}
		if m.loaded && m.delay > 0 {
			m.since = now()
		}
	}
	m.block = append(m.block, p.Records()...)
	m.count++
	m.bytes += p.Envelope.PayloadBytes()
}

// wait is how long the batch in the making may still wait for company. The
// deadline counts from its first event and later ones do not extend it.
func (m *merge) wait(now func() time.Time) (time.Duration, bool) {
	if m.count == 0 || !m.loaded || m.delay <= 0 || m.count >= m.maxEvents || m.bytes >= m.maxBytes {
		return 0, false
	}
	left := m.delay - now().Sub(m.since)
	return left, left > 0
}

// size is an upper bound for the frame's length.
func (m *merge) size() int { return len(m.block) + eventHeadroom + 256 }

func (m *merge) appendFrame(dst []byte, s stream.Shape) []byte {
	binary.BigEndian.PutUint32(m.block, uint32(m.count))
	return appendEvents(dst, m.block, m.meta, s)
}

func (m *merge) reset() {
	m.loaded = m.count > 1
	m.count, m.bytes = 0, 0
}

// appendEvents writes an event frame of its own for block, which begins at
// meta.BaseOffset.
func appendEvents(dst []byte, block wire.Block, meta stream.Meta, s stream.Shape) []byte {
	if meta.Skipped == 0 {
		s &^= stream.WithSkipped
	}
	if meta.Publisher == "" {
		s &^= stream.WithPublisher
	}
	if meta.TimestampMicros == 0 {
		s &^= stream.WithTimestamps
	}
	f := flagsOf(s)
	if s&stream.WithTimestamps != 0 {
		dst = wire.AppendEventHead(dst, f, 0, meta.BaseOffset, meta.Skipped, []byte(meta.Publisher), wire.TimedSize(block))
		return wire.AppendTimed(dst, block, meta.TimestampMicros)
	}
	dst = wire.AppendEventHead(dst, f, 0, meta.BaseOffset, meta.Skipped, []byte(meta.Publisher), len(block))
	return append(dst, block...)
}

// appendSplit writes a piece that starts inside its batch or is over the
// limits of a frame as several frames.
func (f *feeder) appendSplit(dst []byte, p stream.Piece) []byte {
	meta := p.Envelope.Meta()
	if p.First > 0 {
		meta.Skipped = 0 // the skipped offsets lie before the batch's start
	}
	meta.BaseOffset = p.Offset()
	records := p.Records()
	for len(records) > 0 {
		part := []byte{0, 0, 0, 0}
		count, bytes := 0, 0
		for len(records) > 0 && (count == 0 || count < f.batch.maxEvents) {
			n := int(binary.BigEndian.Uint32(records))
			if count > 0 && bytes+n > f.batch.maxBytes {
				break
			}
			part = append(part, records[:4+n]...)
			records = records[4+n:]
			count++
			bytes += n
		}
		binary.BigEndian.PutUint32(part, uint32(count))
		dst = appendEvents(dst, part, meta, f.shape)
		meta.BaseOffset += uint64(count)
		meta.Skipped = 0
	}
	return dst
}
