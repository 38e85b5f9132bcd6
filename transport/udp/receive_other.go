//go:build !linux

package udp

import (
	"net"

	"golang.org/x/net/ipv4"
)

// A receiver reads as the system can: without coalescing and without polls.
type receiver struct {
	counts counts
	batch  *ipv4.PacketConn
}

func (r *receiver) init(u *net.UDPConn, _ Options) error {
	r.batch = ipv4.NewPacketConn(u)
	return nil
}

func (r *receiver) coalesced() bool { return false }

// ReadBatch reads into the first buffer of each message, up to one packet
// each, and returns how many it filled. flags must be 0.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	n, err := c.rx.batch.ReadBatch(ms, flags)
	if err == nil {
		c.rx.counts.reads.Add(1)
		c.rx.counts.packets.Add(uint64(n))
	}
	return n, err
}

// segmentSize is 0: only Linux segments in the kernel.
func segmentSize([]byte) int { return 0 }
