package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

// A cursor walks a binary payload. Its first failure sticks: later reads give
// zero values, so a layout is read straight through and checked once.
type cursor struct {
	rest    []byte
	field   string // the field that failed
	problem string // why; empty while all is well
}

func (c *cursor) fail(field, problem string) {
	if c.problem == "" {
		c.field, c.problem = field, problem
		c.rest = nil
	}
}

func (c *cursor) take(field string, n int) []byte {
	if n > len(c.rest) {
		c.fail(field, "longer than the payload")
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8(field string) uint8 {
	if b := c.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16(field string) uint16 {
	if b := c.take(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u64(field string) uint64 {
	if b := c.take(field, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes16 reads a u16 length and that many bytes. The view is not nil unless
// the read failed.
func (c *cursor) bytes16(field string) []byte {
	return c.take(field, int(c.u16(field)))
}

// text16 is bytes16 for a string, which must be valid UTF-8.
func (c *cursor) text16(field string) []byte {
	b := c.bytes16(field)
	if !utf8.Valid(b) {
		c.fail(field, "not valid UTF-8")
	}
	return b
}

// err is the typed error of the first failure, or nil.
func (c *cursor) err(message string, kind error) error {
	if c.problem == "" {
		return nil
	}
	return &FieldError{Message: message, Field: c.field, Problem: c.problem, kind: kind}
}

// setText makes *p the text of b, without allocating when it already is.
func setText(p *string, b []byte) {
	if *p != string(b) {
		*p = string(b)
	}
}

// cutText cuts s to at most n bytes without splitting a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func appendText16(dst []byte, s string) []byte {
	s = cutText(s, MaxShortBytes)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}
