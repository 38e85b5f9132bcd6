package quic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

const (
	// stagger is the head start of each address over the next.
	stagger = 250 * time.Millisecond
	// maxAddrs bounds the addresses of one host that are tried.
	maxAddrs = 4
)

// resolve finds the addresses behind "host:port", IPv4 first: a UDP port
// nobody listens on is silent, and a listener bound to one family is more
// often found there.
func resolve(ctx context.Context, addr string) (host string, addrs []netip.AddrPort, err error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, fmt.Errorf("%w (want host:port)", err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return "", nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", nil, err
	}
	var later []netip.AddrPort
	for _, ip := range ips {
		ip = ip.Unmap()
		if ip.Is4() {
			addrs = append(addrs, netip.AddrPortFrom(ip, uint16(port)))
		} else {
			later = append(later, netip.AddrPortFrom(ip, uint16(port)))
		}
	}
	// One of each family is tried before a second of either.
	addrs = interleave(addrs, later)
	if len(addrs) == 0 {
		return "", nil, fmt.Errorf("no address for %q", host)
	}
	return host, addrs[:min(len(addrs), maxAddrs)], nil
}

func interleave[T any](a, b []T) []T {
	out := make([]T, 0, len(a)+len(b))
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			out = append(out, a[i])
		}
		if i < len(b) {
			out = append(out, b[i])
		}
	}
	return out
}

// race dials addrs one after the other, each wait later or as soon as all
// before it have failed, and returns the first that answers. Others that
// answer are discarded. The first address's error speaks for all.
func race[A, C any](ctx context.Context, addrs []A, wait time.Duration, dial func(context.Context, A) (C, error), drop func(C)) (C, error) {
	if len(addrs) == 1 {
		return dial(ctx, addrs[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		i    int
		conn C
		err  error
	}
	results := make(chan result, len(addrs))
	errs := make([]error, len(addrs))
	started, failed := 0, 0
	start := func() {
		i := started
		started++
		go func() {
			c, err := dial(ctx, addrs[i])
			results <- result{i, c, err}
		}()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	start()
	for {
		select {
		case <-timer.C:
			if started < len(addrs) {
				start()
				timer.Reset(wait)
			}
		case r := <-results:
			if r.err == nil {
				cancel()
				go func() {
					for range started - failed - 1 {
						if late := <-results; late.err == nil {
							drop(late.conn)
						}
					}
				}()
				return r.conn, nil
			}
			errs[r.i] = r.err
			if failed++; failed == len(addrs) {
				var none C
				return none, errs[0]
			}
			if failed == started {
				start()
				timer.Reset(wait)
			}
		}
	}
}
