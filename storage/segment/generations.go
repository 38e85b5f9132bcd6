package segment

import "sort"

const (
	epochsMagic    = 0x464C5845 // "FLXE"
	epochsHeader   = 12
	generationSize = 16
	// MaxGenerations is how many of the newest are kept.
	MaxGenerations = 512
)

// Generation is one leadership of the log.
type Generation struct {
	Number uint64
	Start  uint64 // offset of its first record
}

// Generations is the file epochs: the leaderships of a log, oldest first. Lost,
// it costs automatic repair of a log that went another way than its leader's.
type Generations []Generation

// Record adds a leadership, unless its number is not newer than the newest
// (storage 13), and keeps the newest [MaxGenerations].
func (g Generations) Record(number, start uint64) Generations {
	if n := len(g); n > 0 && (number <= g[n-1].Number || start < g[n-1].Start) {
		return g
	}
	g = append(g, Generation{Number: number, Start: start})
	return g[max(0, len(g)-MaxGenerations):]
}

// End is the offset after the last record of a leadership: where the next one
// starts, or tail for the newest. ok is false for a number that is not kept; it
// must not be guessed.
func (g Generations) End(number, tail uint64) (offset uint64, ok bool) {
	i := sort.Search(len(g), func(i int) bool { return g[i].Number >= number })
	if i == len(g) || g[i].Number != number {
		return 0, false
	}
	if i+1 < len(g) {
		return g[i+1].Start, true
	}
	return tail, true
}

// Cut forgets the leaderships that start at or past offset, for a log that was
// truncated there.
func (g Generations) Cut(offset uint64) Generations {
	n := sort.Search(len(g), func(i int) bool { return g[i].Start >= offset })
	return g[:n:n] // what is recorded next must not reach who holds g
}

// Append appends the file; of more than [MaxGenerations] the newest.
func (g Generations) Append(dst []byte) []byte {
	g = g[max(0, len(g)-MaxGenerations):]
	start := len(dst)
	dst = appendSide(dst, epochsMagic, uint16(len(g)))
	dst = appendU32(dst, 0) // the checksum, below
	for _, e := range g {
		dst = appendU64(dst, e.Number)
		dst = appendU64(dst, e.Start)
	}
	putU32(dst[start+8:], epochsSum(dst[start:]))
	return dst
}

// epochsSum leaves out the magic, which is compared, and the checksum itself.
func epochsSum(b []byte) uint32 { return extend(checksum(b[4:8]), b[epochsHeader:]) }

// ParseGenerations reads the file. After an error go on with none, and say so.
func ParseGenerations(b []byte) (Generations, error) {
	count, err := openSide(b, epochsMagic, epochsHeader)
	if err != nil {
		return nil, err
	}
	size := epochsHeader + int(count)*generationSize
	if len(b) < size {
		return nil, truncated(size, len(b))
	}
	if count > MaxGenerations || len(b) > size {
		return nil, corrupt(SideFileLength, 6, "%d generations in %d bytes", count, len(b))
	}
	if sum, want := epochsSum(b), getU32(b[8:]); sum != want {
		return nil, corrupt(SideFileChecksum, 8, "computed %08x, stored %08x", sum, want)
	}
	g := make(Generations, count)
	for i := range g {
		at := epochsHeader + i*generationSize
		g[i] = Generation{Number: getU64(b[at:]), Start: getU64(b[at+8:])}
		if i > 0 && (g[i].Number <= g[i-1].Number || g[i].Start < g[i-1].Start) {
			return nil, corrupt(SideFileValue, int64(at), "generation %d does not ascend", i)
		}
	}
	return g, nil
}
