package segment

import "iter"

// All yields each record with its offset, a view of the block. It ends early
// at a length that does not fit, which [Batch.CheckBlock] reports.
func (b *Batch) All() iter.Seq2[uint64, []byte] {
	// So small that it is inlined, and the loop's state stays on the stack.
	return func(yield func(uint64, []byte) bool) { b.each(yield) }
}

func (b *Batch) each(yield func(uint64, []byte) bool) {
	if len(b.Block) < blockCountSize {
		return
	}
	rest := b.Block[blockCountSize:]
	for i := range uint64(b.Count) {
		record, next, ok := cutRecord(rest)
		if !ok || !yield(b.BaseOffset+i, record) {
			return
		}
		rest = next
	}
}

// cutRecord cuts the record at the start of b from what follows.
func cutRecord(b []byte) (record, rest []byte, ok bool) {
	if len(b) < recordLengthSize {
		return nil, nil, false
	}
	n := uint64(getU32(b)) + recordLengthSize
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[recordLengthSize:n:n], b[n:], true
}

// CheckBlock walks the block: Count records, each within it, and nothing left
// over. For bytes from a peer, and for tools.
func (b *Batch) CheckBlock() error {
	if len(b.Block) < blockCountSize {
		return truncated(blockCountSize, len(b.Block))
	}
	if count := getU32(b.Block); count != b.Count {
		return corrupt(BatchCount, 0, "block of %d records under a header of %d", count, b.Count)
	}
	rest := b.Block[blockCountSize:]
	for i := range b.Count {
		at := int64(len(b.Block) - len(rest))
		var ok bool
		if _, rest, ok = cutRecord(rest); !ok {
			return corrupt(BatchLength, at, "record %d is longer than its block", i)
		}
	}
	if len(rest) > 0 {
		return corrupt(BatchLength, int64(len(b.Block)-len(rest)), "%d bytes behind the last record", len(rest))
	}
	return nil
}

// AppendGenerationBlock appends the block of a [GenerationStart] batch.
func AppendGenerationBlock(dst []byte, generation uint64) []byte {
	dst = appendU32(dst, 1)
	dst = appendU32(dst, 8)
	return appendU64(dst, generation)
}
