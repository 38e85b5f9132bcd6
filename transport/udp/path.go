package udp

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// A Path is what a socket knows of the way to one peer from what was sent
// there. quic-go does not tell the packet size it has settled on, but names
// it to the kernel with every coalesced send, and without coalescing fills
// packets to it.
type Path struct {
	paths *paths
	to    netip.AddrPort
	users int // guarded by paths.mu

	mtu atomic.Int32
	// size and times count how often a plain packet size above mtu was seen.
	size, times atomic.Int32
}

// sureAfter is how many plain packets of one size make it the path's. A size
// that is only probed for is sent three times at most.
const sureAfter = 8

// MTU is the size in bytes of the largest packets in regular use on the path;
// 0 before there were any.
func (p *Path) MTU() int {
	if p == nil {
		return 0
	}
	return int(p.mtu.Load())
}

// Release ends the watch; it is called once.
func (p *Path) Release() {
	if p == nil {
		return
	}
	p.paths.mu.Lock()
	defer p.paths.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(p.paths.watched, p.to)
	}
}

// sent notes a datagram of n bytes, cut by the kernel into packets of segment
// bytes if that is not 0.
func (p *Path) sent(n, segment int) {
	known := int(p.mtu.Load())
	if segment > 0 {
		if segment > known {
			p.mtu.Store(int32(segment))
		}
		return
	}
	if n <= known {
		return
	}
	if int(p.size.Swap(int32(n))) != n {
		p.times.Store(0)
	}
	if p.times.Add(1) >= sureAfter {
		p.mtu.Store(int32(n))
	}
}

// paths are those watched now: one for each peer of an open connection.
type paths struct {
	mu      sync.RWMutex
	watched map[netip.AddrPort]*Path
}

// find is the path to a peer, or nil.
func (p *paths) find(to netip.AddrPort) *Path {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.watched[to]
}

// WatchPath follows the path to a peer until the Path is released. Watching
// one peer twice gives the same Path. It is nil, and as good as any, for an
// address that is not UDP's.
func (c *Conn) WatchPath(to net.Addr) *Path {
	u, ok := to.(*net.UDPAddr)
	if !ok {
		return nil
	}
	key := unmapped(u)
	c.paths.mu.Lock()
	defer c.paths.mu.Unlock()
	p, ok := c.paths.watched[key]
	if !ok {
		if c.paths.watched == nil {
			c.paths.watched = make(map[netip.AddrPort]*Path)
		}
		p = &Path{paths: &c.paths, to: key}
		c.paths.watched[key] = p
	}
	p.users++
	return p
}

// WriteMsgUDP sends as [net.UDPConn.WriteMsgUDP] does, but without its
// allocation for the address.
func (c *Conn) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if addr == nil {
		return c.UDPConn.WriteMsgUDP(b, oob, nil)
	}
	to := unmapped(addr)
	n, oobn, err = c.UDPConn.WriteMsgUDPAddrPort(b, oob, to)
	if err == nil {
		if p := c.paths.find(to); p != nil {
			p.sent(len(b), segmentSize(oob))
		}
	}
	return n, oobn, err
}

// unmapped is u with an IPv4 address in one form only.
func unmapped(u *net.UDPAddr) netip.AddrPort {
	ap := u.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
