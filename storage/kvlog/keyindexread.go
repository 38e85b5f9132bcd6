package kvlog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

// errStale says that a key index, whole as it may be, is not of this log.
var errStale = errors.New("key index does not match the log")

// loadKeyIndex returns the index as of an offset from which to replay: the
// snapshot if all of it verifies, else an empty one at the log's base.
func (c *core) loadKeyIndex() (*index, uint64) {
	x, covered, err := c.readKeyIndex()
	if err == nil {
		return x, covered
	}
	if !errors.Is(err, fs.ErrNotExist) {
		c.opt.Logger.Info("key index not used, the whole log is read", "dir", c.opt.Dir, "reason", err)
	}
	return newIndex(), c.log.Base()
}

func (c *core) readKeyIndex() (x *index, covered uint64, err error) {
	file, err := c.opt.FS.Open(filepath.Join(c.opt.Dir, KeyIndexName))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return nil, 0, err
	}
	head, tail, err := checkKeyIndex(file, size, c.kind.code())
	if err != nil {
		return nil, 0, err
	}
	if err := c.matchLog(head, tail); err != nil {
		return nil, 0, err
	}
	entries := io.NewSectionReader(file, keyIndexHeader, size-keyIndexHeader-keyIndexTrailer)
	scan := &keyIndexScan{from: bufio.NewReaderSize(entries, 64<<10), bytes: uint64(entries.Size()), count: tail.count}
	x, err = c.indexFrom(scan, tail.checked)
	return x, head.covered, err
}

// checkKeyIndex verifies a file as a whole: nothing of it is used before.
func checkKeyIndex(file io.ReaderAt, size int64, kind byte) (head keyIndexHead, tail keyIndexTail, err error) {
	if size < keyIndexHeader+keyIndexTrailer {
		return head, tail, &RecordError{"shorter than header and trailer"}
	}
	var buf [keyIndexTrailer]byte
	if err := readFull(file, buf[:], size-keyIndexTrailer); err != nil {
		return head, tail, err
	}
	tail = parseKeyIndexTail(buf[:])
	sum := newSum()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, size-4)); err != nil {
		return head, tail, err
	}
	if sum.Sum32() != tail.crc {
		return head, tail, &RecordError{"key index checksum differs"}
	}
	// Every entry takes more than its fixed part: no count goes past that.
	if tail.count > uint64(size)/keyIndexEntry {
		return head, tail, &RecordError{"more entries than the file can hold"}
	}
	if err := readFull(file, buf[:keyIndexHeader], 0); err != nil {
		return head, tail, err
	}
	head, err = parseKeyIndexHead(buf[:keyIndexHeader], kind)
	if err == nil && head.covered > tail.checked {
		err = &RecordError{"covered past what was checked"}
	}
	return head, tail, err
}

func readFull(file io.ReaderAt, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	return cmp.Or(err, io.ErrUnexpectedEOF)
}

// matchLog compares a snapshot with the log there is.
func (c *core) matchLog(head keyIndexHead, tail keyIndexTail) error {
	base, end := c.log.Base(), c.log.Tail()
	if head.covered < base || tail.checked > end {
		return fmt.Errorf("%w: it is of [%d, %d), the log holds [%d, %d)", errStale, head.covered, tail.checked, base, end)
	}
	crc, err := c.crcAt(tail.checked)
	if err != nil {
		return err
	}
	if crc != tail.checkCRC {
		return fmt.Errorf("%w: the batch before offset %d is another", errStale, tail.checked)
	}
	return nil
}

// crcAt is the header CRC of the batch that ends at offset, 0 if the log begins
// there. It covers the CRC of the batch before it, and so on to the first.
func (c *core) crcAt(offset uint64) (uint32, error) {
	if offset == c.log.Base() {
		return 0, nil
	}
	page, err := c.log.ReadAll(offset-1, 1, 1)
	if err != nil {
		return 0, err
	}
	defer page.Release()
	for i := range page.Batches {
		if page.Batches[i].End() == offset {
			return page.Batches[i].CRC, nil
		}
	}
	return 0, fmt.Errorf("%w: no batch ends at offset %d", errStale, offset)
}

// indexFrom builds the index. checked bounds the offsets of entries.
func (c *core) indexFrom(scan *keyIndexScan, checked uint64) (*index, error) {
	x := newIndex()
	base := c.log.Base()
	segments := c.log.Segments()
	for {
		e, key, ok, err := scan.next()
		if err != nil || !ok {
			return x, err
		}
		if e.offset < base || e.offset >= checked {
			return nil, fmt.Errorf("%w: entry at offset %d", errStale, e.offset)
		}
		if c.kind.readsLog() && !lies(e, segments) {
			return nil, fmt.Errorf("%w: entry at offset %d is not in segment %d", errStale, e.offset, e.segment)
		}
		if x.get(key).present {
			return nil, &RecordError{"key twice"}
		}
		x.set(string(key), e)
	}
}

// lies reports whether an entry's segment holds its offset and its bytes.
func lies(e entry, segments []shardlog.SegmentInfo) bool {
	n, found := slices.BinarySearchFunc(segments, uint64(e.segment), func(s shardlog.SegmentInfo, id uint64) int {
		return cmp.Compare(s.ID, id)
	})
	if !found {
		return false
	}
	s := segments[n]
	return e.offset >= s.Base && (!s.Sealed || e.offset < s.End) && e.position <= s.Bytes-int64(e.length)
}
