package recovery

import (
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// BenchmarkInspect reads one segment of 256 MiB whole, in batches of 64 records
// of 1 KiB.
func BenchmarkInspect(b *testing.B) {
	dir := b.TempDir()
	file, err := CreateSegment(fs.OS(), dir, 0, segment.Header{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	const records, size, segmentBytes = 64, 1024, 256 << 20
	block := []byte{0, 0, 0, records}
	for range records {
		block = append(append(block, 0, 0, size>>8, 0), make([]byte, size)...)
	}
	batch := segment.Batch{Count: records, Block: block}
	pos := int64(segment.HeaderSize)
	var buf []byte
	for pos < segmentBytes {
		buf = batch.Append(buf[:0])
		if _, err := file.WriteAt(buf, pos); err != nil {
			b.Fatal(err)
		}
		pos += int64(len(buf))
		batch.BaseOffset, batch.PrevCRC = batch.End(), batch.CRC
	}
	if err := WriteMarkFile(fs.OS(), dir, segment.Mark{SyncedBytes: uint64(pos)}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(pos)
	b.ReportAllocs()
	for b.Loop() {
		p, err := Inspect(fs.OS(), filepath.Clean(dir), Options{})
		if err != nil || p.Verdict != Clean || p.Tail != batch.BaseOffset {
			b.Fatalf("%+v, %v", p, err)
		}
	}
}
