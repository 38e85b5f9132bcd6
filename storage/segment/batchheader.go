package segment

import "encoding/binary"

const (
	batchMagic    = 0x464C5842 // "FLXB"
	batchSummedAt = 8          // header_crc covers what follows
	flagProducer  = 1

	blockCountSize   = 4
	recordLengthSize = 4
	generationBlock  = blockCountSize + recordLengthSize + 8
)

var batchMagicBytes = []byte("FLXB")

func putU32(b []byte, v uint32) { binary.BigEndian.PutUint32(b, v) }

// BatchHeader is what is known of a batch without its body.
type BatchHeader struct {
	Kind            Kind
	Count           uint32 // records
	BaseOffset      uint64
	Generation      uint64
	TimestampMicros uint64 // since 1970
	DurableThrough  uint64
	HasProducer     bool
	ProducerID      uint64
	Sequence        uint64
	PrevCRC         uint32
	CRC             uint32 // of this header
	BodyCRC         uint32
	PublisherLen    int // bytes
	BlockLen        uint32
	ExtraLen        uint32
}

// Size is the length of the whole batch in bytes, at most [MaxBatchBytes].
func (h *BatchHeader) Size() int {
	return BatchHeaderSize + h.PublisherLen + int(h.BlockLen) + int(h.ExtraLen)
}

// End is the offset after the last record.
func (h *BatchHeader) End() uint64 { return h.BaseOffset + uint64(h.Count) }

// ParseBatchHeader reads the header at the start of b. No field is used before
// the checksum is verified, so a length it returns was written by Felix and is
// within its bound. The error is a *[CorruptionError].
func ParseBatchHeader(b []byte) (BatchHeader, error) {
	if len(b) < BatchHeaderSize {
		return BatchHeader{}, truncated(BatchHeaderSize, len(b))
	}
	b = b[:BatchHeaderSize]
	if m := getU32(b); m != batchMagic {
		return BatchHeader{}, corrupt(BatchMagic, 0, "%08x", m)
	}
	crc := getU32(b[4:])
	if sum := checksum(b[batchSummedAt:]); sum != crc {
		return BatchHeader{}, corrupt(BatchHeaderChecksum, 0, "computed %08x, stored %08x", sum, crc)
	}
	h := BatchHeader{
		CRC:             crc,
		PrevCRC:         getU32(b[8:]),
		BodyCRC:         getU32(b[12:]),
		Kind:            Kind(b[16]),
		HasProducer:     b[17]&flagProducer != 0,
		PublisherLen:    int(b[18]),
		Count:           getU32(b[20:]),
		BlockLen:        getU32(b[24:]),
		ExtraLen:        getU32(b[28:]),
		BaseOffset:      getU64(b[32:]),
		Generation:      getU64(b[40:]),
		TimestampMicros: getU64(b[48:]),
		DurableThrough:  getU64(b[56:]),
		ProducerID:      getU64(b[64:]),
		Sequence:        getU64(b[72:]),
	}
	if b[17]&^flagProducer != 0 || b[19] != 0 {
		return h, corrupt(BatchFlags, 17, "flags %02x, reserved %02x", b[17], b[19])
	}
	if err := h.check(); err != nil {
		return h, err
	}
	return h, nil
}

// check refuses what no writer makes, though its checksum is right.
func (h *BatchHeader) check() error {
	switch {
	case h.Kind > Commit:
		return corrupt(BatchKind, 16, "%d", h.Kind)
	case !h.HasProducer && (h.ProducerID != 0 || h.Sequence != 0):
		return corrupt(BatchFlags, 64, "a producer without the flag")
	case uint64(h.PublisherLen)+uint64(h.BlockLen)+uint64(h.ExtraLen) > MaxBody:
		return corrupt(BatchTooLarge, 24, "block of %d bytes, extra of %d", h.BlockLen, h.ExtraLen)
	case h.Count == 0:
		return corrupt(BatchCount, 20, "no records")
	case h.Kind != Records && h.Count != 1:
		return corrupt(BatchCount, 20, "%d records in a batch of kind %v", h.Count, h.Kind)
	case h.End() < h.BaseOffset:
		return corrupt(BatchCount, 20, "%d records from offset %d", h.Count, h.BaseOffset)
	case uint64(h.BlockLen) < blockCountSize+recordLengthSize*uint64(h.Count):
		return corrupt(BatchLength, 24, "%d bytes for %d records", h.BlockLen, h.Count)
	case h.Kind == GenerationStart && h.BlockLen != generationBlock:
		return corrupt(BatchLength, 24, "%d bytes for a generation", h.BlockLen)
	}
	return nil
}
