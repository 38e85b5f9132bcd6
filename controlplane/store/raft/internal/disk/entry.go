package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	hraft "github.com/hashicorp/raft"
)

// An entry on the disk, numbers big-endian: CRC-32C of all that follows (4
// bytes), term (8), nanoseconds since the epoch when it was appended (8), type
// (1), length of the extensions (4), extensions, data.
const entryHeader = 4 + 8 + 8 + 1 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort = errors.New("it is cut short")
	errCRC   = errors.New("its checksum does not match")
)

func appendEntry(b []byte, l *hraft.Log) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	b = append(b, byte(l.Type))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Extensions...)
	b = append(b, l.Data...)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

func checkEntry(b []byte) error {
	if len(b) < entryHeader || uint64(binary.BigEndian.Uint32(b[21:])) > uint64(len(b)-entryHeader) {
		return errShort
	}
	if crc32.Checksum(b[4:], castagnoli) != binary.BigEndian.Uint32(b) {
		return errCRC
	}
	return nil
}

// parseEntry copies an entry out of the file's memory.
func parseEntry(index uint64, b []byte, l *hraft.Log) error {
	if err := checkEntry(b); err != nil {
		return err
	}
	ext := int(binary.BigEndian.Uint32(b[21:]))
	body := append([]byte(nil), b[entryHeader:]...)
	*l = hraft.Log{
		Index: index,
		Term:  binary.BigEndian.Uint64(b[4:]),
		Type:  hraft.LogType(b[20]),
		Data:  body[ext:],
	}
	if ext > 0 {
		l.Extensions = body[:ext:ext]
	}
	if at := int64(binary.BigEndian.Uint64(b[12:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	return nil
}
