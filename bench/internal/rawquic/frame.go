package rawquic

import (
	"encoding/binary"

	"github.com/felixlog/felix/wire"
)

const (
	// minRequest is the smallest payload of an echo request: its slot and
	// the size of the reply asked for.
	minRequest = 8
	// minReply is the smallest frame of a reply: it carries the slot.
	minReply = wire.HeaderSize + 4
)

// appendRequest builds an echo request whose frame is size bytes, asking for
// a reply frame of reply bytes.
func appendRequest(dst []byte, slot uint32, size, reply int) []byte {
	payload := max(size-wire.HeaderSize, minRequest)
	dst = wire.AppendHeader(dst, 0, payload)
	dst = binary.BigEndian.AppendUint32(dst, slot)
	dst = binary.BigEndian.AppendUint32(dst, uint32(reply))
	return append(dst, make([]byte, payload-minRequest)...)
}

// appendReply builds the frame that answers a request's payload. The slot
// comes first in it.
func appendReply(dst, request []byte) []byte {
	if len(request) < minRequest {
		return dst
	}
	size := min(int(binary.BigEndian.Uint32(request[4:])), readBuffer)
	size = max(size, minReply)
	dst = wire.AppendHeader(dst, 0, size-wire.HeaderSize)
	dst = append(dst, request[:4]...)
	return append(dst, make([]byte, size-minReply)...)
}

func slotOf(payload []byte) uint32 { return binary.BigEndian.Uint32(payload) }
