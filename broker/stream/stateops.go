package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A StateChange is one keyed change of an atomic commit (wire 13).
type StateChange struct {
	// Delete removes the key; Value is then not used.
	Delete bool
	Key    []byte
	Value  []byte
}

// The state operations of a commit batch on disk, in its Extra, big-endian:
//
//	u32 count, count x { u8 op, u32 key length, key, op 1 only: u32 value length, value }
//
// op 1 puts, op 2 deletes.
const (
	statePut    = 1
	stateDelete = 2
)

// AppendStateChanges encodes the operations of a commit batch.
func AppendStateChanges(dst []byte, changes []StateChange) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(changes)))
	for _, c := range changes {
		op := byte(statePut)
		if c.Delete {
			op = stateDelete
		}
		dst = append(dst, op)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Key)))
		dst = append(dst, c.Key...)
		if !c.Delete {
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Value)))
			dst = append(dst, c.Value...)
		}
	}
	return dst
}

var errStateChanges = errors.New("malformed state changes")

// eachStateChange calls f for every operation; the slices are views of b.
func eachStateChange(b []byte, f func(StateChange)) error {
	if len(b) < 4 {
		return errStateChanges
	}
	count := binary.BigEndian.Uint32(b)
	b = b[4:]
	for i := range count {
		if len(b) == 0 || b[0] != statePut && b[0] != stateDelete {
			return fmt.Errorf("operation %d: %w", i, errStateChanges)
		}
		c := StateChange{Delete: b[0] == stateDelete}
		var ok bool
		if c.Key, b, ok = cutBytes(b[1:]); ok && !c.Delete {
			c.Value, b, ok = cutBytes(b)
		}
		if !ok {
			return fmt.Errorf("operation %d: %w", i, errStateChanges)
		}
		f(c)
	}
	if len(b) > 0 {
		return errStateChanges
	}
	return nil
}

// cutBytes cuts a u32 length and as many bytes.
func cutBytes(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if uint64(len(b)-4) < n {
		return nil, nil, false
	}
	return b[4 : 4+n : 4+n], b[4+n:], true
}
