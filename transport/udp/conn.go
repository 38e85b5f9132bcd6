package udp

import (
	"fmt"
	"net"
)

// A Conn is a UDP socket; see the package comment. Its reading methods are
// safe for concurrent use, as those of *net.UDPConn are, and take turns.
type Conn struct {
	*net.UDPConn
	rx    receiver
	paths paths

	receiveBuffer, sendBuffer int
}

// Listen binds a socket to addr ("host:port"; an empty host is any address,
// port 0 any port).
func Listen(addr string, o Options) (*Conn, error) {
	local, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	u, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	c, err := Wrap(u, o)
	if err != nil {
		u.Close()
		return nil, err
	}
	return c, nil
}

// Wrap takes u over, which must not be read from again. On an error u is the
// caller's still.
func Wrap(u *net.UDPConn, o Options) (*Conn, error) {
	if o.Poll < 0 || o.Poll > MaxPoll {
		return nil, fmt.Errorf("poll %v is not between 0 and %v", o.Poll, MaxPoll)
	}
	c := &Conn{UDPConn: u}
	if err := c.rx.init(u, o); err != nil {
		return nil, fmt.Errorf("prepare udp socket %v: %w", u.LocalAddr(), err)
	}
	c.receiveBuffer, c.sendBuffer = sizeBuffers(u, o)
	return c, nil
}

// GRO says whether the kernel coalesces received packets.
func (c *Conn) GRO() bool { return c.rx.coalesced() }

// Buffers are the kernel's buffers in bytes, as far as the system tells.
func (c *Conn) Buffers() (receive, send int) { return c.receiveBuffer, c.sendBuffer }

// Counters read what was received so far.
func (c *Conn) Counters() Counters { return c.rx.counts.read() }
