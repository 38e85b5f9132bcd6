package udp

import (
	"net"
	"net/netip"
	"strconv"
)

// maxPeers bounds the addresses kept. A socket that hears from more forgets
// all of them and starts over.
const maxPeers = 1024

// A peerKey is a peer's address as the kernel gives it.
type peerKey struct {
	ip   [16]byte
	v4   bool
	port uint16
	zone uint32
}

// A peer is an address in the two forms readers ask for. Both are shared
// between packets and never changed.
type peer struct {
	addr *net.UDPAddr
	ap   netip.AddrPort
}

// peers keep the addresses packets came from, so that a known peer's packets
// cost no allocation.
type peers struct {
	lastKey peerKey
	last    *peer
	known   map[peerKey]*peer
}

func (p *peers) lookup(k peerKey) *peer {
	if p.last != nil && p.lastKey == k {
		return p.last
	}
	found, ok := p.known[k]
	if !ok {
		if p.known == nil || len(p.known) >= maxPeers {
			p.known = make(map[peerKey]*peer)
		}
		found = k.peer()
		p.known[k] = found
	}
	p.lastKey, p.last = k, found
	return found
}

func (k peerKey) peer() *peer {
	var ip netip.Addr
	if k.v4 {
		ip = netip.AddrFrom4([4]byte(k.ip[:4]))
	} else {
		ip = netip.AddrFrom16(k.ip).WithZone(zoneName(k.zone))
	}
	ap := netip.AddrPortFrom(ip, k.port)
	return &peer{addr: net.UDPAddrFromAddrPort(ap), ap: ap}
}

// zoneName is the name of an IPv6 zone, as package net gives it: that of the
// interface, or else its number.
func zoneName(index uint32) string {
	if index == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(index), 10)
}

// copyAddr is p's address for a reader that may change what it is given.
func (p *peer) copyAddr() *net.UDPAddr {
	a := *p.addr
	a.IP = append(net.IP(nil), a.IP...)
	return &a
}
