package api

import (
	"container/list"
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxAddresses bounds the addresses whose rates are known; beyond it the one
// that asked longest ago is forgotten.
const maxAddresses = 16 << 10

// addressLimits bound what each address may ask of the token routes.
type addressLimits struct {
	rate  rate.Limit
	burst int
	clock func() time.Time

	mu    sync.Mutex
	order *list.List // of *addressLimit, the latest first
	known map[netip.Prefix]*list.Element
}

type addressLimit struct {
	address netip.Prefix
	limiter *rate.Limiter
}

func newAddressLimits(perSecond float64, burst int, clock func() time.Time) *addressLimits {
	return &addressLimits{
		rate: rate.Limit(perSecond), burst: burst, clock: clock,
		order: list.New(), known: map[netip.Prefix]*list.Element{},
	}
}

// take answers 0 if a client may go on, else how long it should wait.
func (l *addressLimits) take(remote string) time.Duration {
	now := l.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.of(addressOf(remote))
	if limiter.AllowN(now, 1) {
		return 0
	}
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(math.Ceil(missing / float64(l.rate) * float64(time.Second)))
}

func (l *addressLimits) of(address netip.Prefix) *rate.Limiter {
	if e, ok := l.known[address]; ok {
		l.order.MoveToFront(e)
		return e.Value.(*addressLimit).limiter
	}
	if l.order.Len() >= maxAddresses {
		oldest := l.order.Remove(l.order.Back()).(*addressLimit)
		delete(l.known, oldest.address)
	}
	fresh := &addressLimit{address: address, limiter: rate.NewLimiter(l.rate, l.burst)}
	l.known[address] = l.order.PushFront(fresh)
	return fresh.limiter
}

// addressOf is who is bounded: an IPv4 address, or the network that one IPv6
// client is usually given whole.
func addressOf(remote string) netip.Prefix {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
