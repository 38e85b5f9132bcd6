package recorder

import (
	"net"

	"golang.org/x/net/ipv4"
)

// maxDatagram is the longest datagram the server reads.
const maxDatagram = 4096

// A wideSocket reads datagrams longer than quic-go's receive buffers of 1452
// bytes. The published client's first packet is one: 1561 bytes where the
// route allows it. Cut short it cannot be decrypted, and the client sends
// again, in smaller packets, only after a second.
type wideSocket struct {
	*net.UDPConn
	batch *ipv4.PacketConn
}

func wide(c *net.UDPConn) *wideSocket { return &wideSocket{c, ipv4.NewPacketConn(c)} }

// ReadBatch gives each message a buffer of its own instead of the one it came
// with; quic-go reads what is in the message.
func (s *wideSocket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for i := range ms {
		ms[i].Buffers[0] = make([]byte, maxDatagram)
	}
	return s.batch.ReadBatch(ms, flags)
}
