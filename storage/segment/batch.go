package segment

import "bytes"

// Kind says what a batch is.
type Kind uint8

// The kinds of batches.
const (
	Records         Kind = 0 // what a publisher sent
	GenerationStart Kind = 1 // a new leader's first batch; delivered to nobody
	Commit          Kind = 2 // one event, and state operations in Extra
)

func (k Kind) String() string {
	switch k {
	case Records:
		return "records"
	case GenerationStart:
		return "generation start"
	case Commit:
		return "commit"
	}
	return "unknown"
}

// Bounds of a batch, in bytes.
const (
	BatchHeaderSize = 80
	MaxPublisher    = 255
	// MaxBody bounds publisher, block and extra together: 64 MiB and room for
	// what goes around a payload of that size.
	MaxBody       = 64<<20 + 64<<10
	MaxBatchBytes = BatchHeaderSize + MaxBody
)

// Batch is what one append wrote. Its slices are views of the bytes it was
// parsed from, or of the writer's.
type Batch struct {
	Kind            Kind
	Count           uint32 // records, at least 1
	BaseOffset      uint64 // of the first record
	Generation      uint64 // of the leader that wrote it
	TimestampMicros uint64 // since 1970
	DurableThrough  uint64 // records below were known durable when it was written

	HasProducer bool
	ProducerID  uint64 // 0 without HasProducer
	Sequence    uint64 // 0 without HasProducer

	PrevCRC uint32 // CRC of the batch before
	CRC     uint32 // of the header, and through it of the body and all before

	Publisher []byte // at most MaxPublisher
	Block     []byte // u32 count, count x {u32 length, bytes}
	Extra     []byte // what Commit adds
}

// Size is the number of bytes Append writes.
func (b *Batch) Size() int {
	return BatchHeaderSize + len(b.Publisher) + len(b.Block) + len(b.Extra)
}

// End is the offset after the last record.
func (b *Batch) End() uint64 { return b.BaseOffset + uint64(b.Count) }

// BodyCRC is the checksum of a batch's body. It is the part of encoding that
// costs, and needs no offset: a writer computes it before it takes its lock.
func BodyCRC(publisher string, block, extra []byte) uint32 {
	return extend(extend(extendString(0, publisher), block), extra)
}

// Append appends the batch and sets b.CRC. The batch is the caller's to get
// right: sizes within their bounds, a block of Count records.
func (b *Batch) Append(dst []byte) []byte {
	crc := extend(extend(checksum(b.Publisher), b.Block), b.Extra)
	dst = b.appendHeader(dst, len(b.Publisher), crc)
	dst = append(dst, b.Publisher...)
	dst = append(dst, b.Block...)
	return append(dst, b.Extra...)
}

// AppendPrepared is Append for a writer that has the [BodyCRC] already and the
// publisher as a string; b.Publisher is not used.
func (b *Batch) AppendPrepared(dst []byte, publisher string, bodyCRC uint32) []byte {
	dst = b.appendHeader(dst, len(publisher), bodyCRC)
	dst = append(dst, publisher...)
	dst = append(dst, b.Block...)
	return append(dst, b.Extra...)
}

func (b *Batch) appendHeader(dst []byte, publisherLen int, bodyCRC uint32) []byte {
	start := len(dst)
	dst = appendU32(dst, batchMagic)
	dst = appendU32(dst, 0) // header_crc, below
	dst = appendU32(dst, b.PrevCRC)
	dst = appendU32(dst, bodyCRC)
	var flags byte
	var producer, sequence uint64
	if b.HasProducer {
		flags, producer, sequence = flagProducer, b.ProducerID, b.Sequence
	}
	dst = append(dst, byte(b.Kind), flags, byte(publisherLen), 0)
	dst = appendU32(dst, b.Count)
	dst = appendU32(dst, uint32(len(b.Block)))
	dst = appendU32(dst, uint32(len(b.Extra)))
	dst = appendU64(dst, b.BaseOffset)
	dst = appendU64(dst, b.Generation)
	dst = appendU64(dst, b.TimestampMicros)
	dst = appendU64(dst, b.DurableThrough)
	dst = appendU64(dst, producer)
	dst = appendU64(dst, sequence)
	b.CRC = checksum(dst[start+batchSummedAt:])
	putU32(dst[start+4:], b.CRC)
	return dst
}

// ParseBatch reads the batch at the start of b into out and returns its size
// in bytes. Both checksums and all lengths are verified, and that the block
// counts as many records as the header; not the lengths within the block, which
// were checked when it came and are covered by the checksum: see
// [Batch.CheckBlock]. The error is a *[CorruptionError]; out is then undefined.
func ParseBatch(b []byte, out *Batch) (n int, err error) {
	h, err := ParseBatchHeader(b)
	if err != nil {
		return 0, err
	}
	n = h.Size()
	if len(b) < n {
		return 0, truncated(n, len(b))
	}
	body := b[BatchHeaderSize:n:n]
	if sum := checksum(body); sum != h.BodyCRC {
		return 0, corrupt(BatchChecksum, 0, "offset %d: computed %08x, stored %08x", h.BaseOffset, sum, h.BodyCRC)
	}
	block := h.PublisherLen + int(h.BlockLen)
	out.set(&h)
	out.Publisher = body[:h.PublisherLen:h.PublisherLen]
	out.Block = body[h.PublisherLen:block:block]
	out.Extra = body[block:]
	if count := getU32(out.Block); count != h.Count {
		return 0, corrupt(BatchCount, BatchHeaderSize, "block of %d records under a header of %d", count, h.Count)
	}
	return n, nil
}

func (b *Batch) set(h *BatchHeader) {
	b.Kind, b.Count, b.BaseOffset = h.Kind, h.Count, h.BaseOffset
	b.Generation, b.TimestampMicros, b.DurableThrough = h.Generation, h.TimestampMicros, h.DurableThrough
	b.HasProducer, b.ProducerID, b.Sequence = h.HasProducer, h.ProducerID, h.Sequence
	b.PrevCRC, b.CRC = h.PrevCRC, h.CRC
}

// FindBatch looks in b for the next batch header that verifies. Recovery uses
// it behind damage, where no length can be believed.
func FindBatch(b []byte) (position int, h BatchHeader, ok bool) {
	for position < len(b) {
		i := bytes.Index(b[position:], batchMagicBytes)
		if i < 0 {
			break
		}
		position += i
		if h, err := ParseBatchHeader(b[position:]); err == nil {
			return position, h, true
		}
		position++
	}
	return 0, BatchHeader{}, false
}
