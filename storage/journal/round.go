package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

const (
	roundMagic      = 0x464C5852 // "FLXR"
	roundHeaderSize = 32
	entryHeaderSize = 2 + 8 + 8 + 4
	// alignment of rounds: a page, so that no write touches one that an
	// earlier round made durable.
	alignment = 4096
)

// An entry is what one log has in a round.
type entry struct {
	log      string
	segment  uint64
	position int64
	bytes    []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (e *entry) size() int { return entryHeaderSize + len(e.log) + len(e.bytes) }

func (e *entry) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(e.log)))
	dst = binary.BigEndian.AppendUint64(dst, e.segment)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.position))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.bytes)))
	dst = append(dst, e.log...)
	return append(dst, e.bytes...)
}

var errEntry = errors.New("entry runs past its round")

// parseEntry reads the first entry of b; its name and bytes are views of b.
func parseEntry(b []byte) (e entry, rest []byte, err error) {
	if len(b) < entryHeaderSize {
		return entry{}, nil, errEntry
	}
	name := int(binary.BigEndian.Uint16(b))
	length := uint64(binary.BigEndian.Uint32(b[18:]))
	if uint64(len(b)-entryHeaderSize) < uint64(name)+length {
		return entry{}, nil, errEntry
	}
	e = entry{segment: binary.BigEndian.Uint64(b[2:]), position: int64(binary.BigEndian.Uint64(b[10:]))}
	if e.position < 0 {
		return entry{}, nil, errors.New("entry at a negative position")
	}
	b = b[entryHeaderSize:]
	e.log, e.bytes = string(b[:name]), b[name:uint64(name)+length]
	return e, b[uint64(name)+length:], nil
}

// A roundHeader is the first bytes of a round.
type roundHeader struct {
	epoch, number   uint64
	length, entries uint32
	crc             uint32
}

// seal fills in the header of a round whose body follows its first
// roundHeaderSize bytes.
func seal(b []byte, epoch, number uint64, entries int) {
	binary.BigEndian.PutUint32(b, roundMagic)
	binary.BigEndian.PutUint64(b[8:], epoch)
	binary.BigEndian.PutUint64(b[16:], number)
	binary.BigEndian.PutUint32(b[24:], uint32(len(b)-roundHeaderSize))
	binary.BigEndian.PutUint32(b[28:], uint32(entries))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
}

// parseHeader reads a header; its checksum covers the body, too, and is checked
// with it.
func parseHeader(b []byte) (h roundHeader, ok bool) {
	if len(b) < roundHeaderSize || binary.BigEndian.Uint32(b) != roundMagic {
		return roundHeader{}, false
	}
	return roundHeader{
		crc:    binary.BigEndian.Uint32(b[4:]),
		epoch:  binary.BigEndian.Uint64(b[8:]),
		number: binary.BigEndian.Uint64(b[16:]),
		length: binary.BigEndian.Uint32(b[24:]), entries: binary.BigEndian.Uint32(b[28:]),
	}, true
}

// parseRound reads a round at the beginning of b, whole and verified.
func parseRound(b []byte) (h roundHeader, entries []entry, ok bool) {
	h, ok = parseHeader(b)
	if !ok || uint64(len(b)-roundHeaderSize) < uint64(h.length) {
		return roundHeader{}, nil, false
	}
	if crc32.Checksum(b[8:roundHeaderSize+int(h.length)], castagnoli) != h.crc {
		return roundHeader{}, nil, false
	}
	body := b[roundHeaderSize : roundHeaderSize+int(h.length)]
	for len(body) > 0 {
		e, rest, err := parseEntry(body)
		if err != nil {
			return roundHeader{}, nil, false
		}
		entries, body = append(entries, e), rest
	}
	if uint64(len(entries)) != uint64(h.entries) {
		return roundHeader{}, nil, false
	}
	return h, entries, true
}

// aligned is n rounded up to where the next round may begin.
func aligned(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }
