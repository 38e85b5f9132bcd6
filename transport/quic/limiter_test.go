package quic

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/felixlog/felix/transport"
)

// refusals counts what a limiter tells.
type refusals struct {
	mu     sync.Mutex
	reason map[string]int
}

func (r *refusals) note(reason string, addr net.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == nil {
		r.reason = make(map[string]int)
	}
	r.reason[reason]++
}

func (r *refusals) of(reason string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason[reason]
}

func expectRefused(t *testing.T, d *Dialer, addr string) {
	t.Helper()
	c, err := d.Dial(testContext(t), addr)
	if c != nil {
		t.Fatal("connected above the cap")
	}
	var closed *transport.CloseError
	if !errors.Is(err, transport.ErrRefused) || !errors.As(err, &closed) || closed.Application || !closed.Remote {
		t.Fatalf("dial above the cap: %#v, want ErrRefused from the peer", err)
	}
}

func TestConnectionCap(t *testing.T) {
	var told refusals
	limiter := NewConnLimiter(Limits{MaxConns: 2, OnRefused: told.note})
	// Two listeners share the budget.
	a := newEnds(t, func(o *ListenOptions) { o.Limiter = limiter }, nil)
	b := newEnds(t, func(o *ListenOptions) { o.Limiter = limiter }, nil)
	first, _ := a.connect(t)
	b.connect(t)
	expectRefused(t, a.dialer, a.addr())
	expectRefused(t, b.dialer, b.addr())
	if got := limiter.Refused(RefusedLimit); got < 2 || uint64(told.of(RefusedLimit)) != got {
		t.Errorf("%d refusals counted, %d told, want two or more (a client repeats itself)", got, told.of(RefusedLimit))
	}
	if limiter.Refused(RefusedPerIPLimit) != 0 || limiter.Open() != 2 {
		t.Errorf("refused per IP %d, open %d", limiter.Refused(RefusedPerIPLimit), limiter.Open())
	}
	first.Close(0, "")
	eventually(t, "a place is free", func() bool { return limiter.Open() == 1 })
	b.connect(t)
}

func TestPerIPCap(t *testing.T) {
	var told refusals
	limiter := NewConnLimiter(Limits{MaxPerIP: 2, OnRefused: told.note})
	e := newEnds(t, func(o *ListenOptions) { o.Limiter = limiter }, func(o *DialOptions) { o.LocalAddr = "127.0.0.1:0" })
	other := e.newDialer(t, func(o *DialOptions) { o.LocalAddr = "127.0.0.2:0" })
	kept, _ := e.connect(t)
	e.connect(t)
	expectRefused(t, e.dialer, e.addr())
	if told.of(RefusedPerIPLimit) == 0 || told.of(RefusedLimit) != 0 {
		t.Errorf("told of refusals %v", told.reason)
	}
	// Another address has places of its own.
	e.connectFrom(t, other)
	kept.Close(0, "")
	eventually(t, "a place of the address is free", func() bool { return limiter.Open() == 2 })
	e.connect(t)
}

// A handshake that comes to nothing gives its place back.
func TestFailedHandshakeReturnsPlace(t *testing.T) {
	limiter := NewConnLimiter(Limits{MaxConns: 1})
	e := newEnds(t, func(o *ListenOptions) { o.Limiter = limiter }, nil)
	stranger := newEnds(t, nil, nil) // trusts another CA
	for range 3 {
		if _, err := stranger.dialer.Dial(testContext(t), e.addr()); err == nil {
			t.Fatal("connected without trust")
		}
		eventually(t, "the place is free", func() bool { return limiter.Open() == 0 })
	}
	e.connect(t)
}

func TestLimiterVerifiesAddressesUnderPressure(t *testing.T) {
	at := func(ip string) net.Addr {
		return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1))
	}
	l := NewConnLimiter(Limits{MaxConns: 10, MaxPerIP: 4, MaxUnverified: 3})
	take := func(ip string) *lease {
		t.Helper()
		e, err := l.acquire(at(ip))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	expect := func(ip string, want bool) {
		t.Helper()
		if got := l.mustVerify(at(ip)); got != want {
			t.Errorf("must %s prove its address: %v, want %v", ip, got, want)
		}
	}
	expect("192.0.2.1", false)
	take("192.0.2.1").establish()
	expect("192.0.2.1", false)
	take("::ffff:192.0.2.1").establish() // the same address in IPv6's dress
	expect("192.0.2.1", true)            // half of its places are gone
	expect("192.0.2.2", false)
	take("192.0.2.1").establish()
	take("192.0.2.1").establish()
	expect("192.0.2.1", false) // none is left: to refuse costs less
	if _, err := l.acquire(at("192.0.2.1")); err == nil {
		t.Error("a fifth connection of four was taken")
	}
	pending := []*lease{take("2001:db8::1"), take("2001:db8::2"), take("2001:db8::3")}
	expect("2001:db8::4", true) // as many handshakes as may be unproven
	pending[0].establish()
	expect("2001:db8::4", false)
	for _, e := range pending {
		e.release()
	}
	if l.Open() != 4 || len(l.perIP) != 1 || l.handshaking != 0 {
		t.Errorf("open %d, addresses %d, handshaking %d", l.Open(), len(l.perIP), l.handshaking)
	}
}

// Where addresses are verified, clients connect all the same.
func TestConnectWithVerifiedAddress(t *testing.T) {
	limiter := NewConnLimiter(Limits{MaxPerIP: 3})
	e := newEnds(t, func(o *ListenOptions) { o.Limiter = limiter }, nil)
	for range 3 { // the third has to verify
		e.connect(t)
	}
	expectRefused(t, e.dialer, e.addr())
}
