package kvlog

import (
	"encoding/binary"
	"unicode/utf8"
)

const (
	recordVersion  = 1 // every record but the following
	carriedVersion = 2 // a put that carries its entry version

	cacheHeader   = 14
	carriedHeader = cacheHeader + 8
)

// A CacheRecord is one change of a cache (storage 16.2). Parsed, Key and Value
// are views of the bytes.
type CacheRecord struct {
	Op              Op
	ExpiresAtMillis int64
	// Carried marks a copy made by compaction; Version is the entry version
	// it restates.
	Carried bool
	Version uint64
	Key     []byte
	Value   []byte // Put only
}

// Append appends the record to dst.
func (r *CacheRecord) Append(dst []byte) []byte {
	version := byte(recordVersion)
	if r.Carried {
		version = carriedVersion
	}
	dst = append(dst, version, byte(r.Op))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.ExpiresAtMillis))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.Key)))
	if r.Carried {
		dst = binary.LittleEndian.AppendUint64(dst, r.Version)
	}
	dst = append(dst, r.Key...)
	return append(dst, r.Value...)
}

// ParseCacheRecord reads one whole record. Error: *[RecordError].
func ParseCacheRecord(b []byte) (CacheRecord, error) {
	if len(b) < cacheHeader {
		return CacheRecord{}, &RecordError{"shorter than its header"}
	}
	r := CacheRecord{Op: Op(b[1]), ExpiresAtMillis: int64(binary.LittleEndian.Uint64(b[2:]))}
	keyLen := uint64(binary.LittleEndian.Uint32(b[10:]))
	rest := b[cacheHeader:]
	switch b[0] {
	case recordVersion:
	case carriedVersion:
		if len(b) < carriedHeader {
			return CacheRecord{}, &RecordError{"shorter than its header"}
		}
		r.Carried, r.Version = true, binary.LittleEndian.Uint64(b[cacheHeader:])
		rest = b[carriedHeader:]
	default:
		return CacheRecord{}, &RecordError{"unknown version"}
	}
	var err error
	if r.Key, rest, err = cutKey(rest, keyLen); err != nil {
		return CacheRecord{}, err
	}
	switch r.Op {
	case Put:
		r.Value = rest
		if r.ExpiresAtMillis < 0 {
			return CacheRecord{}, &RecordError{"expiry out of range"}
		}
	case Deleted, Expired:
		if r.Carried || len(rest) != 0 || r.ExpiresAtMillis != 0 {
			return CacheRecord{}, &RecordError{"removal with the fields of a put"}
		}
	default:
		return CacheRecord{}, &RecordError{"unknown op"}
	}
	return r, nil
}

// cutKey cuts a key of n bytes off b, n not yet checked.
func cutKey(b []byte, n uint64) (key, rest []byte, err error) {
	switch {
	case n == 0 || n > MaxKeyBytes:
		return nil, nil, &RecordError{"key length out of range"}
	case n > uint64(len(b)):
		return nil, nil, &RecordError{"key runs past the end"}
	case !utf8.Valid(b[:n]):
		return nil, nil, &RecordError{"key is not UTF-8"}
	}
	return b[:n:n], b[n:], nil
}

// checkKey refuses what cutKey would refuse.
func checkKey(key []byte) error {
	switch {
	case len(key) == 0 || len(key) > MaxKeyBytes:
		return &InvalidWriteError{"a key has 1 to 65535 bytes"}
	case !utf8.Valid(key):
		return &InvalidWriteError{"a key is UTF-8"}
	}
	return nil
}
