package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// separator ends the group's name in a key; no name holds it.
	separator = '\x1f'
	// hasPosition is the flag of a mark with a committed position.
	hasPosition = 1
	markBytes   = 17
	countBytes  = 4
	// givenUp is the count of a record that became a dead letter ahead of a
	// gap: it is finished.
	givenUp = math.MaxUint32
	// redriven is the value of a dead letter that is back in play.
	redriven = "redriven"
)

// A mark is the durable position of a group.
type mark struct {
	// has says that there is a committed position: everything below it is
	// finished.
	has       bool
	committed uint64
	// handed: offsets below may have been handed out.
	handed uint64
}

// append appends the value of the group's key.
func (m mark) append(dst []byte) []byte {
	var flags byte
	if m.has {
		flags |= hasPosition
	}
	dst = append(dst, flags)
	dst = binary.BigEndian.AppendUint64(dst, m.committed)
	return binary.BigEndian.AppendUint64(dst, m.handed)
}

// parseMark reads what append writes and nothing else.
func parseMark(b []byte) (mark, error) {
	if len(b) != markBytes {
		return mark{}, fmt.Errorf("a position of %d bytes, want %d", len(b), markBytes)
	}
	m := mark{
		has:       b[0]&hasPosition != 0,
		committed: binary.BigEndian.Uint64(b[1:]),
		handed:    binary.BigEndian.Uint64(b[9:]),
	}
	switch {
	case b[0]&^hasPosition != 0:
		return mark{}, fmt.Errorf("unknown flags %#x in a position", b[0])
	case !m.has && m.committed != 0:
		return mark{}, fmt.Errorf("a position of %d in a mark that has none", m.committed)
	}
	return m, nil
}

// appendCount appends the value of an attempts key.
func appendCount(dst []byte, attempts uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, attempts)
}

// parseCount reads what appendCount writes.
func parseCount(b []byte) (uint32, error) {
	if len(b) != countBytes {
		return 0, fmt.Errorf("a count of attempts of %d bytes, want %d", len(b), countBytes)
	}
	n := binary.BigEndian.Uint32(b)
	if n == 0 {
		return 0, errors.New("a count of no attempts")
	}
	return n, nil
}

// parseLetter reads the value of a dead letter.
func parseLetter(b []byte) (isRedriven bool, err error) {
	switch string(b) {
	case "":
		return false, nil
	case redriven:
		return true, nil
	}
	return false, fmt.Errorf("a dead letter of %d bytes that says neither nothing nor %q", len(b), redriven)
}

// recordKey is the key of one record of a group.
func recordKey(group string, offset uint64) []byte {
	key := make([]byte, 0, len(group)+21)
	key = append(key, group...)
	key = append(key, separator)
	return strconv.AppendUint(key, offset, 10)
}

// recordPrefix is what the keys of a group's records begin with.
func recordPrefix(group string) []byte { return append([]byte(group), separator) }

// parseRecordKey reads the offset of a key that begins with the prefix.
func parseRecordKey(key, prefix []byte) (uint64, error) {
	digits, ok := strings.CutPrefix(string(key), string(prefix))
	offset, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || strconv.FormatUint(offset, 10) != digits {
		return 0, fmt.Errorf("key %q names no offset", key)
	}
	return offset, nil
}
