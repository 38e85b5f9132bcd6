package segment

import "sort"

const (
	indexMagic = 0x464C5849 // "FLXI"
	// IndexHeaderSize and IndexEntrySize are in bytes.
	IndexHeaderSize = 24
	IndexEntrySize  = 16
	// DefaultIndexSpacing is in bytes (storage 6).
	DefaultIndexSpacing = 4096
)

// IndexEntry says where in a segment a batch begins.
type IndexEntry struct {
	Offset   uint64 // of the batch's first record
	Position uint64 // in the segment, in bytes
}

// Builder chooses which batches of a segment get an entry (storage 4). Fed the
// same batches it chooses the same ones, so a rebuilt index is the index that
// was lost.
type Builder struct {
	spacing uint64
	since   uint64 // bytes from the last entry's batch on
	entries []IndexEntry
}

// NewBuilder makes a builder for one segment; spacing is in bytes, 0 for
// [DefaultIndexSpacing].
func NewBuilder(spacing int) *Builder {
	if spacing <= 0 {
		spacing = DefaultIndexSpacing
	}
	return &Builder{spacing: uint64(spacing)}
}

// Add takes the next batch of the segment, size bytes long, and reports
// whether it was given an entry.
func (b *Builder) Add(offset, position uint64, size int) bool {
	chosen := len(b.entries) == 0 || b.since >= b.spacing
	if chosen {
		b.entries = append(b.entries, IndexEntry{Offset: offset, Position: position})
		b.since = 0
	}
	b.since += uint64(size)
	return chosen
}

// Entries are those chosen so far. The slice is the builder's; what is in it
// does not change before Cut or Reset.
func (b *Builder) Entries() []IndexEntry { return b.entries }

// Cut forgets the entries at or past offset, for a log that was truncated
// there to size bytes of segment.
func (b *Builder) Cut(offset, size uint64) {
	n := sort.Search(len(b.entries), func(i int) bool { return b.entries[i].Offset >= offset })
	b.entries = append([]IndexEntry(nil), b.entries[:n]...) // readers may hold the old array
	b.since = 0
	if n > 0 {
		b.since = size - b.entries[n-1].Position
	}
}

// AppendIndex appends a whole index file.
func AppendIndex(dst []byte, base uint64, entries []IndexEntry) []byte {
	dst = appendU32(dst, indexMagic)
	dst = appendU16(dst, FormatVersion)
	dst = appendU16(dst, 0)
	dst = appendU64(dst, base)
	dst = appendU64(dst, 0)
	return AppendIndexEntries(dst, entries)
}

// AppendIndexEntries appends entries without the header, as they are added to
// an index file.
func AppendIndexEntries(dst []byte, entries []IndexEntry) []byte {
	for _, e := range entries {
		dst = appendU64(dst, e.Offset)
		dst = appendU64(dst, e.Position)
	}
	return dst
}

// ParseIndex reads an index file of the segment with that base offset. An
// entry cut at the end is left out. An error, a *[CorruptionError], means that
// the index is unusable and has to be rebuilt.
func ParseIndex(b []byte, base uint64) ([]IndexEntry, error) {
	if err := checkIndexHeader(b, base); err != nil {
		return nil, err
	}
	b = b[IndexHeaderSize:]
	entries := make([]IndexEntry, 0, len(b)/IndexEntrySize)
	last := IndexEntry{}
	for i := range cap(entries) {
		e := parseIndexEntry(b[i*IndexEntrySize:])
		if i == 0 && e != (IndexEntry{Offset: base, Position: HeaderSize}) {
			return nil, corrupt(IndexOrder, IndexHeaderSize, "the first entry is not the first batch")
		}
		if i > 0 && (e.Offset <= last.Offset || e.Position <= last.Position) {
			return nil, corrupt(IndexOrder, int64(IndexHeaderSize+i*IndexEntrySize), "entry %d does not ascend", i)
		}
		entries = append(entries, e)
		last = e
	}
	return entries, nil
}

func checkIndexHeader(b []byte, base uint64) error {
	if len(b) < IndexHeaderSize {
		return truncated(IndexHeaderSize, len(b))
	}
	if m := getU32(b); m != indexMagic {
		return corrupt(IndexMagic, 0, "%08x", m)
	}
	if v := getU16(b[4:]); v != FormatVersion {
		return corrupt(IndexVersion, 4, "%d, known is %d", v, FormatVersion)
	}
	if getU16(b[6:]) != 0 || getU64(b[16:]) != 0 {
		return corrupt(IndexVersion, 6, "reserved bytes are not zero")
	}
	if found := getU64(b[8:]); found != base {
		return &CorruptionError{Kind: IndexBase, Position: 8, Expected: base, Found: found}
	}
	return nil
}

func parseIndexEntry(b []byte) IndexEntry {
	return IndexEntry{Offset: getU64(b), Position: getU64(b[8:])}
}

// Lookup finds where to start reading for offset: the last entry at or below
// it. ok is false if there is none; reading then starts at [HeaderSize].
func Lookup(entries []IndexEntry, offset uint64) (entry IndexEntry, ok bool) {
	n := sort.Search(len(entries), func(i int) bool { return entries[i].Offset > offset })
	if n == 0 {
		return IndexEntry{}, false
	}
	return entries[n-1], true
}
