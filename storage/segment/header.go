package segment

const (
	headerMagic = 0x464C5853 // "FLXS"
	// HeaderSize is where a segment's first batch begins, in bytes.
	HeaderSize = 64

	headerSumAt      = 60
	headerReservedAt = 28
)

// Header begins a segment.
type Header struct {
	BaseOffset    uint64 // of the first record the segment holds, or will hold
	CreatedMicros uint64 // since 1970
	PrevCRC       uint32 // CRC of the last batch before the segment, 0 if none
}

// Append appends the header's [HeaderSize] bytes.
func (h Header) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendU32(dst, headerMagic)
	dst = appendU16(dst, FormatVersion)
	dst = appendU16(dst, 0)
	dst = appendU64(dst, h.BaseOffset)
	dst = appendU64(dst, h.CreatedMicros)
	dst = appendU32(dst, h.PrevCRC)
	dst = append(dst, make([]byte, headerSumAt-headerReservedAt)...)
	return appendU32(dst, checksum(dst[start:]))
}

// ParseHeader reads the header at the start of b: *[CorruptionError] if it is
// not one that this version wrote.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, truncated(HeaderSize, len(b))
	}
	b = b[:HeaderSize]
	if m := getU32(b); m != headerMagic {
		return Header{}, corrupt(SegmentMagic, 0, "%08x", m)
	}
	if sum, want := checksum(b[:headerSumAt]), getU32(b[headerSumAt:]); sum != want {
		return Header{}, corrupt(SegmentHeaderChecksum, 0, "computed %08x, stored %08x", sum, want)
	}
	if v := getU16(b[4:]); v != FormatVersion {
		return Header{}, corrupt(SegmentVersion, 4, "%d, known is %d", v, FormatVersion)
	}
	if f := getU16(b[6:]); f != 0 {
		return Header{}, corrupt(SegmentFlags, 6, "%04x", f)
	}
	if !allZero(b[headerReservedAt:headerSumAt]) {
		return Header{}, corrupt(SegmentFlags, headerReservedAt, "reserved bytes are not zero")
	}
	return Header{BaseOffset: getU64(b[8:]), CreatedMicros: getU64(b[16:]), PrevCRC: getU32(b[24:])}, nil
}
