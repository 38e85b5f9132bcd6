package segment

const (
	markMagic = 0x464C584D // "FLXM"
	markSumAt = 24
	// MarkSize is in bytes, and less than what a device writes at once.
	MarkSize = 32
)

// Mark is the file durable.mark: how far the log is known to have reached the
// device. It is written in place after each flush and not synced, so it lags;
// it never leads. What is missing below it was lost.
type Mark struct {
	Segment     uint64 // id; all segments before it are durable
	SyncedBytes uint64 // of that segment
}

// Append appends the file.
func (m Mark) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendSide(dst, markMagic, 0)
	dst = appendU64(dst, m.Segment)
	dst = appendU64(dst, m.SyncedBytes)
	dst = appendU32(dst, checksum(dst[start:]))
	return appendU32(dst, 0)
}

// ParseMark reads the file. An error means that nothing is known to be
// durable, as if it were missing.
func ParseMark(b []byte) (Mark, error) {
	own, err := openSide(b, markMagic, MarkSize)
	if err == nil {
		err = closeSide(b, markSumAt, MarkSize)
	}
	if err == nil && (own != 0 || getU32(b[28:]) != 0) {
		err = corrupt(SideFileValue, 6, "reserved bytes are not zero")
	}
	if err != nil {
		return Mark{}, err
	}
	return Mark{Segment: getU64(b[8:]), SyncedBytes: getU64(b[16:])}, nil
}
