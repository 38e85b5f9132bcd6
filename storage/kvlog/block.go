package kvlog

import (
	"encoding/binary"

	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// blockPrefix is what a block of one record has before the record: a count of
// one and the record's length.
const blockPrefix = 8

// newBlock returns a block to which one record of n bytes is to be appended.
func newBlock(n int) []byte {
	b := make([]byte, blockPrefix, blockPrefix+n)
	b[3] = 1
	return b
}

// sealBlock writes the length of the record appended to b.
func sealBlock(b []byte) []byte {
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-blockPrefix))
	return b
}

// batchBytes is what a record of n bytes takes in the log.
func batchBytes(n int) int64 { return int64(segment.BatchHeaderSize + blockPrefix + n) }

// eachRecord calls f with the page's records in [from, to), views of the page,
// and with where their batch lies. Batches without records of ours are passed
// over.
func eachRecord(p *shardlog.Page, from, to uint64, f func(rec []byte, offset uint64, at shardlog.Location) error) error {
	for i := range p.Batches {
		b := &p.Batches[i]
		if b.Kind == segment.GenerationStart {
			continue
		}
		next := b.BaseOffset
		for offset, rec := range b.All() {
			next = offset + 1
			if offset < from || offset >= to {
				continue
			}
			if err := f(rec, offset, p.Where[i]); err != nil {
				return err
			}
		}
		if next != b.End() {
			return &CorruptionError{Offset: next, Detail: "record is longer than its block"}
		}
	}
	return nil
}
