package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	// HeaderSize is the length of a frame header in bytes (wire 3.1).
	HeaderSize = 12
	// Magic is the first four bytes of every frame, ASCII "FLX1".
	Magic = 0x464C5831
	// Version is the protocol version; it never moves (wire 0.2).
	Version = 1
)

// A Header is what precedes a payload (wire 3.1).
type Header struct {
	Flags  Flags
	Length uint32 // payload bytes
}

// Unknown reports whether the frame carries a flag bit this level does not
// define. Such a frame is refused, never masked (wire 3.2 rule 5).
func (h Header) Unknown() bool { return h.Flags&^KnownFlags != 0 }

// ParseHeader reads the header at the start of b. It fails with [ErrShort],
// [ErrMagic] or [ErrVersion]; it accepts any flags and any length.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, ErrShort
	}
	if binary.BigEndian.Uint32(b) != Magic {
		return Header{}, ErrMagic
	}
	if binary.BigEndian.Uint16(b[4:]) != Version {
		return Header{}, ErrVersion
	}
	return Header{
		Flags:  Flags(binary.BigEndian.Uint16(b[6:])),
		Length: binary.BigEndian.Uint32(b[8:]),
	}, nil
}

// AppendHeader appends the header of a frame with length payload bytes. It
// panics when the length does not fit the format.
func AppendHeader(dst []byte, f Flags, length int) []byte {
	if length < 0 || uint64(length) > math.MaxUint32 {
		panic(fmt.Sprintf("wire: frame payload of %d bytes", length))
	}
	dst = binary.BigEndian.AppendUint32(dst, Magic)
	dst = binary.BigEndian.AppendUint16(dst, Version)
	dst = binary.BigEndian.AppendUint16(dst, uint16(f))
	return binary.BigEndian.AppendUint32(dst, uint32(length))
}
