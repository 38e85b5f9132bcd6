package kvlog

import "encoding/binary"

// A CounterOp says what a counter record does.
type CounterOp uint8

// The ops of a counter record (storage 17).
const (
	Delta      CounterOp = 0
	Checkpoint CounterOp = 1
)

const counterHeader = 14

// A CounterRecord is one change of a counter. Parsed, Key is a view of the
// bytes.
type CounterRecord struct {
	Op    CounterOp
	Value int64
	Key   []byte
}

// Append appends the record to dst.
func (r *CounterRecord) Append(dst []byte) []byte {
	dst = append(dst, recordVersion, byte(r.Op))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Value))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r.Key)))
	return append(dst, r.Key...)
}

// ParseCounterRecord reads one whole record. Error: *[RecordError].
func ParseCounterRecord(b []byte) (CounterRecord, error) {
	if len(b) < counterHeader {
		return CounterRecord{}, &RecordError{"shorter than its header"}
	}
	if b[0] != recordVersion {
		return CounterRecord{}, &RecordError{"unknown version"}
	}
	r := CounterRecord{Op: CounterOp(b[1]), Value: int64(binary.LittleEndian.Uint64(b[2:]))}
	if r.Op > Checkpoint {
		return CounterRecord{}, &RecordError{"unknown op"}
	}
	key, rest, err := cutKey(b[counterHeader:], uint64(binary.LittleEndian.Uint32(b[10:])))
	if err != nil {
		return CounterRecord{}, err
	}
	if len(rest) != 0 {
		return CounterRecord{}, &RecordError{"bytes after the key"}
	}
	r.Key = key
	return r, nil
}
