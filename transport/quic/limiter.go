package quic

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Reasons for which a [ConnLimiter] refuses (broker 2.2).
const (
	RefusedLimit      = "limit"
	RefusedPerIPLimit = "per_ip_limit"
)

// DefaultMaxUnverified is [Limits.MaxUnverified] when that is zero.
const DefaultMaxUnverified = 128

// Limits are the connection caps of one or several listeners.
type Limits struct {
	// MaxConns bounds connections, counted from their first packet; 0 is
	// boundless.
	MaxConns int
	// MaxPerIP bounds connections of one source address; 0 is boundless.
	MaxPerIP int
	// MaxUnverified bounds handshakes in flight whose source address may be
	// forged. Above it, and above half of MaxPerIP, a peer has to prove its
	// address first, which costs it one round trip; so forged packets cannot
	// use up the caps. 0 means [DefaultMaxUnverified].
	MaxUnverified int
	// OnRefused, if set, is told of every refusal. It must not block.
	OnRefused func(reason string, addr net.Addr)
	// OnFailed, if set, is told of every handshake that was begun and not
	// completed. It must not block.
	OnFailed func()
}

// A ConnLimiter counts connections against [Limits]. A peer above a cap is
// refused before the handshake with CONNECTION_REFUSED (wire 2.4). Several
// listeners may share one.
type ConnLimiter struct {
	limits Limits

	mu          sync.Mutex
	perIP       map[netip.Addr]int
	open        int
	handshaking int

	refusedLimit, refusedPerIP atomic.Uint64
}

// NewConnLimiter enforces l.
func NewConnLimiter(l Limits) *ConnLimiter {
	l.MaxUnverified = orDefault(l.MaxUnverified, DefaultMaxUnverified)
	return &ConnLimiter{limits: l, perIP: make(map[netip.Addr]int)}
}

// Open is how many connections are counted now.
func (l *ConnLimiter) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Refused is how many connections were refused for reason.
func (l *ConnLimiter) Refused(reason string) uint64 {
	switch reason {
	case RefusedLimit:
		return l.refusedLimit.Load()
	case RefusedPerIPLimit:
		return l.refusedPerIP.Load()
	}
	return 0
}

// A lease is one counted connection.
type lease struct {
	l           *ConnLimiter
	ip          netip.Addr
	established bool // guarded by l.mu
}

// acquire counts a connection from addr, or refuses it.
func (l *ConnLimiter) acquire(addr net.Addr) (*lease, error) {
	ip := sourceIP(addr)
	reason := l.take(ip)
	if reason == "" {
		return &lease{l: l, ip: ip}, nil
	}
	if reason == RefusedLimit {
		l.refusedLimit.Add(1)
	} else {
		l.refusedPerIP.Add(1)
	}
	if l.limits.OnRefused != nil {
		l.limits.OnRefused(reason, addr)
	}
	return nil, fmt.Errorf("connection refused: %s", reason)
}

func (l *ConnLimiter) take(ip netip.Addr) (reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.MaxConns > 0 && l.open >= l.limits.MaxConns {
		return RefusedLimit
	}
	if l.limits.MaxPerIP > 0 && l.perIP[ip] >= l.limits.MaxPerIP {
		return RefusedPerIPLimit
	}
	l.open++
	l.handshaking++
	l.perIP[ip]++
	return ""
}

// mustVerify says whether a peer that claims addr has to prove it first. At a
// cap it need not: the refusal is cheaper.
func (l *ConnLimiter) mustVerify(addr net.Addr) bool {
	ip := sourceIP(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handshaking >= l.limits.MaxUnverified {
		return true
	}
	n, most := l.perIP[ip], l.limits.MaxPerIP
	return most > 0 && n >= (most+1)/2 && n < most
}

// establish notes that the handshake is over.
func (e *lease) establish() {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if !e.established {
		e.established = true
		e.l.handshaking--
	}
}

// release gives the place back; it is called once.
func (e *lease) release() {
	if failed := e.giveBack(); failed && e.l.limits.OnFailed != nil {
		e.l.limits.OnFailed()
	}
}

func (e *lease) giveBack() (failed bool) {
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if failed = !e.established; failed {
		e.l.handshaking--
	}
	e.l.open--
	if e.l.perIP[e.ip]--; e.l.perIP[e.ip] == 0 {
		delete(e.l.perIP, e.ip)
	}
	return failed
}

// sourceIP is addr's IP, an IPv4 address in one form only, without zone.
func sourceIP(addr net.Addr) netip.Addr {
	if u, ok := addr.(*net.UDPAddr); ok {
		return u.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
