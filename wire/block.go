package wire

import (
	"encoding/binary"
	"iter"
)

// A Block is the records of one batch (wire 4.1):
//
//	u32 count
//	count x { u32 length, bytes }
//
// The same bytes travel in the publish frame, lie on disk and go out in the
// event frame. A Block made by [ParseBlock] or [AppendBlock] is well formed and
// exactly as long as its records; the methods rely on it. The zero value counts
// as no records.
type Block []byte

const (
	blockCountSize  = 4
	recordSizeBytes = 4
)

// ParseBlock validates the block at the start of b and cuts it from what
// follows. Both results are views of b.
func ParseBlock(b []byte) (Block, []byte, error) {
	c := cursor{rest: b}
	block := c.block()
	if err := c.err("record block", ErrMalformed); err != nil {
		return nil, nil, err
	}
	return block, c.rest, nil
}

// block reads the block at the cursor.
func (c *cursor) block() Block {
	b := c.rest
	if len(b) < blockCountSize {
		c.fail("count", "longer than the payload")
		return nil
	}
	count := binary.BigEndian.Uint32(b)
	if uint64(count) > uint64(len(b)-blockCountSize)/recordSizeBytes {
		c.fail("count", "more records than the payload holds")
		return nil
	}
	at := blockCountSize
	for range count {
		if len(b)-at < recordSizeBytes {
			c.fail("payload", "longer than the payload")
			return nil
		}
		n := binary.BigEndian.Uint32(b[at:])
		at += recordSizeBytes
		if uint64(n) > uint64(len(b)-at) {
			c.fail("payload", "longer than the payload")
			return nil
		}
		at += int(n)
	}
	c.rest = b[at:]
	return Block(b[:at:at])
}

// Count is the number of records.
func (b Block) Count() int {
	if len(b) < blockCountSize {
		return 0
	}
	return int(binary.BigEndian.Uint32(b))
}

// PayloadBytes is the sum of the records' lengths.
func (b Block) PayloadBytes() int {
	return len(b.Records()) - recordSizeBytes*b.Count()
}

// Records is what follows the count: count x { u32 length, bytes }. Blocks are
// joined by adding their counts and joining their Records.
func (b Block) Records() []byte {
	if len(b) < blockCountSize {
		return nil
	}
	return b[blockCountSize:]
}

// All yields each record's position and payload, a view of the block.
func (b Block) All() iter.Seq2[int, []byte] {
	// So small that it is inlined, and the loop's state stays on the stack.
	return func(yield func(int, []byte) bool) { b.each(yield) }
}

func (b Block) each(yield func(int, []byte) bool) {
	rest := b.Records()
	for i := range b.Count() {
		var payload []byte
		payload, rest = firstRecord(rest)
		if !yield(i, payload) {
			return
		}
	}
}

// firstRecord cuts the record at the start of b, which is well formed.
func firstRecord(b []byte) (payload, rest []byte) {
	n := int(binary.BigEndian.Uint32(b)) + recordSizeBytes
	return b[recordSizeBytes:n:n], b[n:]
}

// AppendBlock appends a block of the payloads, in order.
func AppendBlock(dst []byte, payloads ...[]byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payloads)))
	for _, p := range payloads {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// BlockSize is the length of the block [AppendBlock] makes of the payloads.
func BlockSize(payloads ...[]byte) int {
	size := blockCountSize + recordSizeBytes*len(payloads)
	for _, p := range payloads {
		size += len(p)
	}
	return size
}

// append appends the block; the zero value as no records.
func (b Block) append(dst []byte) []byte {
	if len(b) < blockCountSize {
		return binary.BigEndian.AppendUint32(dst, 0)
	}
	return append(dst, b...)
}

func (b Block) size() int { return max(len(b), blockCountSize) }
