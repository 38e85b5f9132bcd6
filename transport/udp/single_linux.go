package udp

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The methods below are those of *net.UDPConn, packet by packet whether or
// not the kernel coalesces. They share the packets with ReadBatch, so each
// goes to one reader.

// readOne reads a packet into b and its control messages into oob. What does
// not fit is cut, flagged and counted.
func (c *Conn) readOne(b, oob []byte) (n, oobn, flags int, from *peer, err error) {
	r := &c.rx
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gro {
		n, oobn, flags, from, err = r.onePulled(b, oob)
	} else {
		n, oobn, flags, from, err = r.onePlain(b, oob)
	}
	if err != nil {
		return 0, 0, 0, nil, c.readError(err)
	}
	r.counts.packets.Add(1)
	if flags&unix.MSG_TRUNC != 0 {
		r.counts.truncated.Add(1)
	}
	return n, oobn, flags, from, nil
}

// onePulled takes the packet from a coalesced run.
func (r *receiver) onePulled(b, oob []byte) (n, oobn, flags int, from *peer, err error) {
	p, err := r.pull()
	if err != nil {
		return 0, 0, 0, nil, err
	}
	oobn, flags = copyOOB(oob, r.runs.oob)
	if n = copy(b, p); n < len(p) {
		flags |= unix.MSG_TRUNC
	}
	return n, oobn, flags, r.runs.from, nil
}

// onePlain reads the packet straight into b.
func (r *receiver) onePlain(b, oob []byte) (n, oobn, flags int, from *peer, err error) {
	r.lend(0, b)
	defer r.lend(0, nil)
	if err := r.read(1); err != nil {
		return 0, 0, 0, nil, err
	}
	m := &r.msgs[0]
	oobn, flags = copyOOB(oob, r.oob(0)[:int(m.hdr.Controllen)])
	flags |= int(m.hdr.Flags) & (unix.MSG_TRUNC | unix.MSG_CTRUNC)
	return int(m.n), oobn, flags, r.peer(0), nil
}

// ReadMsgUDPAddrPort reads as [net.UDPConn.ReadMsgUDPAddrPort] does.
func (c *Conn) ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, addr netip.AddrPort, err error) {
	n, oobn, flags, from, err := c.readOne(b, oob)
	if err != nil {
		return 0, 0, 0, netip.AddrPort{}, err
	}
	return n, oobn, flags, from.ap, nil
}

// ReadMsgUDP reads as [net.UDPConn.ReadMsgUDP] does.
func (c *Conn) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, from, err := c.readOne(b, oob)
	if err != nil {
		return 0, 0, 0, nil, err
	}
	return n, oobn, flags, from.copyAddr(), nil
}

// ReadFromUDPAddrPort reads as [net.UDPConn.ReadFromUDPAddrPort] does.
func (c *Conn) ReadFromUDPAddrPort(b []byte) (n int, addr netip.AddrPort, err error) {
	n, _, _, addr, err = c.ReadMsgUDPAddrPort(b, nil)
	return n, addr, err
}

// ReadFromUDP reads as [net.UDPConn.ReadFromUDP] does.
func (c *Conn) ReadFromUDP(b []byte) (n int, addr *net.UDPAddr, err error) {
	n, _, _, addr, err = c.ReadMsgUDP(b, nil)
	return n, addr, err
}

// ReadFrom reads as [net.UDPConn.ReadFrom] does.
func (c *Conn) ReadFrom(b []byte) (n int, addr net.Addr, err error) {
	n, from, err := c.ReadFromUDP(b)
	if err != nil {
		return 0, nil, err
	}
	return n, from, nil
}

// Read reads as [net.UDPConn.Read] does.
func (c *Conn) Read(b []byte) (int, error) {
	n, _, _, _, err := c.readOne(b, nil)
	return n, err
}
