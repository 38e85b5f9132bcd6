package segment

import (
	"fmt"
	"strings"
)

// CorruptionKind says what is wrong with bytes on disk (storage 21).
type CorruptionKind uint8

// The kinds of corruption.
const (
	SegmentMagic CorruptionKind = iota + 1
	SegmentVersion
	SegmentFlags // or a reserved byte
	SegmentHeaderChecksum

	Truncated // the bytes end early: Needed, Available

	BatchMagic
	BatchHeaderChecksum
	BatchChecksum // of the body
	BatchTooLarge
	BatchFlags
	BatchKind
	BatchCount
	BatchLength // lengths that do not fit each other or the count

	Chain            // prev_crc is not the batch before: Expected, Found
	OffsetOutOfOrder // Expected, Found

	IndexMagic
	IndexVersion
	IndexBase // another segment's index: Expected, Found
	IndexOrder

	SideFileMagic
	SideFileVersion
	SideFileLength
	SideFileChecksum
	SideFileValue // a value that no writer makes

	BelowMark // bytes are missing that were durable: Expected, Found in bytes

	CacheRecord   // a record of a cache log that does not decode
	CounterRecord // a record of a counter log that does not decode
)

var corruptionNames = map[CorruptionKind]string{
	SegmentMagic:          "segment magic",
	SegmentVersion:        "segment version",
	SegmentFlags:          "segment flags",
	SegmentHeaderChecksum: "segment header checksum",
	Truncated:             "truncated",
	BatchMagic:            "batch magic",
	BatchHeaderChecksum:   "batch header checksum",
	BatchChecksum:         "batch checksum",
	BatchTooLarge:         "batch too large",
	BatchFlags:            "batch flags",
	BatchKind:             "batch kind",
	BatchCount:            "batch count",
	BatchLength:           "batch length",
	Chain:                 "broken chain",
	OffsetOutOfOrder:      "offset out of order",
	IndexMagic:            "index magic",
	IndexVersion:          "index version",
	IndexBase:             "index base",
	IndexOrder:            "index order",
	SideFileMagic:         "side file magic",
	SideFileVersion:       "side file version",
	SideFileLength:        "side file length",
	SideFileChecksum:      "side file checksum",
	SideFileValue:         "side file value",
	BelowMark:             "durable data missing",
	CacheRecord:           "cache record",
	CounterRecord:         "counter record",
}

func (k CorruptionKind) String() string {
	if s, ok := corruptionNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// CorruptionError says that bytes on disk are not what was written, and where.
// The parsers of this package know positions within the bytes they were given;
// [CorruptionError.At] adds the file.
type CorruptionError struct {
	Kind     CorruptionKind
	Path     string // of the file or log, "" if not known yet
	Segment  uint64 // id; of no meaning for a side file
	Position int64  // in the file, in bytes

	// Needed and Available are bytes from Position; set with Truncated.
	Needed, Available int64
	// Expected and Found are set with the kinds that name them.
	Expected, Found uint64

	Detail string // what the other fields do not say
	Err    error  // the cause, if an error is one
}

func (e *CorruptionError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "corrupt log: %s", e.Kind)
	if e.Path != "" {
		fmt.Fprintf(&b, " in %s", e.Path)
	}
	fmt.Fprintf(&b, ", segment %d, byte %d", e.Segment, e.Position)
	switch e.Kind {
	case Truncated:
		fmt.Fprintf(&b, ": %d bytes needed, %d there", e.Needed, e.Available)
	case Chain:
		fmt.Fprintf(&b, ": %08x expected, %08x found", e.Expected, e.Found)
	case OffsetOutOfOrder, IndexBase, BelowMark:
		fmt.Fprintf(&b, ": %d expected, %d found", e.Expected, e.Found)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *CorruptionError) Unwrap() error { return e.Err }

// At is the error with its place: the file, the segment's id, and how far into
// the file the parsed bytes began.
func (e *CorruptionError) At(path string, segment uint64, start int64) *CorruptionError {
	placed := *e
	placed.Path, placed.Segment, placed.Position = path, segment, e.Position+start
	return &placed
}

func corrupt(kind CorruptionKind, position int64, format string, args ...any) *CorruptionError {
	return &CorruptionError{Kind: kind, Position: position, Detail: fmt.Sprintf(format, args...)}
}

func truncated(needed, available int) *CorruptionError {
	return &CorruptionError{Kind: Truncated, Needed: int64(needed), Available: int64(available)}
}
