// Package raw reads and writes Felix frames for the conformance tests.
//
// It shares no code with package wire, so that a mistake there cannot hide
// itself: both ends of a conformance test would otherwise make it together.
// It trusts its input no further than a test needs and is no place to take
// framing code from.
package raw

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// HeaderSize is the size of a frame header in bytes (wire 3.1).
const HeaderSize = 12

// Magic opens every frame: "FLX1" (wire 3.1).
const Magic = 0x464C5831

// Version is the protocol version of every frame (wire 0.2).
const Version = 1

// The flag bits of wire 3.3.
const (
	FlagPublishBatch      = 0x0001
	FlagEventBatch        = 0x0002
	FlagEventBatchShared  = 0x0004
	FlagPublishAcked      = 0x0008
	FlagPublishAck        = 0x0010
	FlagEventOffsets      = 0x0020
	FlagPublishKeyed      = 0x0040
	FlagAckOwner          = 0x0080
	FlagPublishIdempotent = 0x0100
	FlagAckCode           = 0x0200
	FlagAckDetail         = 0x0400
	FlagEventSkipped      = 0x0800
	FlagAckOffset         = 0x1000
	FlagEventPublisher    = 0x2000
	FlagEventTimestamps   = 0x4000
	FlagUndefined         = 0x8000
)

// ErrFrameTooLong is what [ReadFrame] answers for a frame whose header
// declares more bytes than the reader allows.
var ErrFrameTooLong = errors.New("frame too long")

// A Frame is one frame as it was on the stream.
type Frame struct {
	Flags   uint16
	Payload []byte
}

// Append appends header and payload to dst.
func (f Frame) Append(dst []byte) []byte {
	return append(AppendHeader(dst, f.Flags, uint32(len(f.Payload))), f.Payload...)
}

// AppendHeader appends a header that declares length bytes, whatever follows.
func AppendHeader(dst []byte, flags uint16, length uint32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, Magic)
	dst = binary.BigEndian.AppendUint16(dst, Version)
	dst = binary.BigEndian.AppendUint16(dst, flags)
	return binary.BigEndian.AppendUint32(dst, length)
}

// ReadFrame reads one frame of at most max payload bytes. The error is io.EOF
// only where the stream ended between frames, and io.ErrUnexpectedEOF where it
// ended inside one.
func ReadFrame(r io.Reader, max int) (Frame, error) {
	var h [HeaderSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	if m := binary.BigEndian.Uint32(h[:]); m != Magic {
		return Frame{}, fmt.Errorf("magic %#08x", m)
	}
	if v := binary.BigEndian.Uint16(h[4:]); v != Version {
		return Frame{}, fmt.Errorf("version %d", v)
	}
	n := binary.BigEndian.Uint32(h[8:])
	if int64(n) > int64(max) {
		return Frame{}, fmt.Errorf("%w: %d bytes", ErrFrameTooLong, n)
	}
	f := Frame{Flags: binary.BigEndian.Uint16(h[6:]), Payload: make([]byte, n)}
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return f, nil
}

// JSON builds a JSON frame (flags 0) from v, which may be ready-made JSON text
// as a string.
func JSON(v any) Frame {
	if s, ok := v.(string); ok {
		return Frame{Payload: []byte(s)}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("conformance message does not encode: " + err.Error())
	}
	return Frame{Payload: b}
}

// Object decodes a JSON frame; numbers stay json.Number, so that 64-bit
// values survive. A binary frame, or one that is no object, gives nil.
func (f Frame) Object() map[string]any {
	if f.Flags != 0 {
		return nil
	}
	var m map[string]any
	if err := decodeNumbers(f.Payload, &m); err != nil {
		return nil
	}
	return m
}

// Type is the "type" member of a JSON frame, empty for any other frame.
func (f Frame) Type() string {
	s, _ := f.Object()["type"].(string)
	return s
}

// Uint reads a member of a JSON frame as an unsigned 64-bit number.
func (f Frame) Uint(name string) (uint64, bool) {
	n, ok := f.Object()[name].(json.Number)
	if !ok {
		return 0, false
	}
	var u uint64
	if _, err := fmt.Sscan(n.String(), &u); err != nil {
		return 0, false
	}
	return u, true
}

// String reads a member of a JSON frame as a string, empty when it is none.
func (f Frame) String(name string) string {
	s, _ := f.Object()[name].(string)
	return s
}

// Describe prints a frame for a log or a failure: JSON as it is, a binary
// frame as its flags and its first bytes.
func (f Frame) Describe() string {
	const shown = 96
	if f.Flags == 0 {
		if len(f.Payload) > 4*shown {
			return string(f.Payload[:4*shown]) + "..."
		}
		return string(f.Payload)
	}
	p := f.Payload
	if len(p) > shown {
		p = p[:shown]
	}
	return fmt.Sprintf("flags %#04x, %d bytes: %x", f.Flags, len(f.Payload), p)
}
