package kvlog

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf8"
)

// KeyIndexName is the file of the key index in a log's directory. It is derived:
// whoever cuts or resets the log removes it, and losing it costs a replay.
const KeyIndexName = "keys.idx"

const (
	keyIndexMagic   = 0x46584958 // "FXIX"
	keyIndexFormat  = 1
	keyIndexHeader  = 16
	keyIndexEntry   = 48 // before the key
	keyIndexTrailer = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A keyIndexHead begins the file.
type keyIndexHead struct {
	kind    byte
	covered uint64 // replay starts here
}

// A keyIndexTail ends it.
type keyIndexTail struct {
	count    uint64
	checked  uint64 // the log is the one of the snapshot up to here
	checkCRC uint32 // header CRC of the batch that ends there
	crc      uint32 // of the file before this field
}

func (h keyIndexHead) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, keyIndexMagic)
	dst = binary.BigEndian.AppendUint16(dst, keyIndexFormat)
	dst = append(dst, h.kind, 0)
	return binary.BigEndian.AppendUint64(dst, h.covered)
}

func parseKeyIndexHead(b []byte, kind byte) (keyIndexHead, error) {
	h := keyIndexHead{kind: kind, covered: binary.BigEndian.Uint64(b[8:])}
	switch {
	case binary.BigEndian.Uint32(b) != keyIndexMagic:
		return h, &RecordError{"not a key index"}
	case binary.BigEndian.Uint16(b[4:]) != keyIndexFormat:
		return h, &RecordError{"unknown key index format"}
	case b[6] != kind || b[7] != 0:
		return h, &RecordError{"key index of another kind of log"}
	}
	return h, nil
}

// append appends the trailer but for its last field.
func (t keyIndexTail) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, t.count)
	dst = binary.BigEndian.AppendUint64(dst, t.checked)
	return binary.BigEndian.AppendUint32(dst, t.checkCRC)
}

func parseKeyIndexTail(b []byte) keyIndexTail {
	return keyIndexTail{
		count:    binary.BigEndian.Uint64(b),
		checked:  binary.BigEndian.Uint64(b[8:]),
		checkCRC: binary.BigEndian.Uint32(b[16:]),
		crc:      binary.BigEndian.Uint32(b[20:]),
	}
}

func appendKeyIndexEntry(dst []byte, key string, e *entry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = binary.BigEndian.AppendUint64(dst, e.offset)
	dst = binary.BigEndian.AppendUint64(dst, e.word)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.expires))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.segment))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.position))
	dst = binary.BigEndian.AppendUint32(dst, e.length)
	return append(dst, key...)
}

// parseKeyIndexEntry reads what precedes a key, and the key's length.
func parseKeyIndexEntry(b []byte) (e entry, keyLen int, err error) {
	n := binary.BigEndian.Uint32(b)
	segment := binary.BigEndian.Uint64(b[28:])
	e = entry{
		offset:   binary.BigEndian.Uint64(b[4:]),
		word:     binary.BigEndian.Uint64(b[12:]),
		expires:  int64(binary.BigEndian.Uint64(b[20:])),
		position: int64(binary.BigEndian.Uint64(b[36:])),
		segment:  uint32(segment),
		length:   binary.BigEndian.Uint32(b[44:]),
	}
	switch {
	case n == 0 || n > MaxKeyBytes:
		return e, 0, &RecordError{"key length out of range"}
	case uint64(e.segment) != segment || e.position < 0 || e.expires < 0:
		return e, 0, &RecordError{"entry field out of range"}
	}
	return e, int(n), nil
}

// A keyIndexScan reads entries one by one.
type keyIndexScan struct {
	from  *bufio.Reader
	bytes uint64 // of entries left
	count uint64 // entries left
	head  [keyIndexEntry]byte
	key   []byte
}

// next is the next entry, its key valid until the call after; false at the end.
func (s *keyIndexScan) next() (e entry, key []byte, ok bool, err error) {
	switch {
	case s.count == 0 && s.bytes == 0:
		return e, nil, false, nil
	case s.count == 0:
		return e, nil, false, &RecordError{"bytes after the last entry"}
	case s.bytes < keyIndexEntry:
		return e, nil, false, &RecordError{"fewer entries than counted"}
	}
	if _, err := io.ReadFull(s.from, s.head[:]); err != nil {
		return e, nil, false, err
	}
	e, n, err := parseKeyIndexEntry(s.head[:])
	if err != nil {
		return e, nil, false, err
	}
	s.bytes -= keyIndexEntry
	if s.bytes < uint64(n) {
		return e, nil, false, &RecordError{"key runs past the end"}
	}
	s.key = slices.Grow(s.key[:0], n)[:n]
	if _, err := io.ReadFull(s.from, s.key); err != nil {
		return e, nil, false, err
	}
	if !utf8.Valid(s.key) {
		return e, nil, false, &RecordError{"key is not UTF-8"}
	}
	s.bytes -= uint64(n)
	s.count--
	return e, s.key, true, nil
}
