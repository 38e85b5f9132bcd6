package udp

import (
	"net"
	"testing"
)

func TestPathMTU(t *testing.T) {
	type packet struct{ n, segment int }
	repeat := func(times int, p packet) []packet {
		out := make([]packet, times)
		for i := range out {
			out[i] = p
		}
		return out
	}
	for _, c := range []struct {
		name string
		sent []packet
		want int
	}{
		{"nothing", nil, 0},
		{"coalesced sends name it", []packet{{20000, 1252}, {300, 1352}}, 1352},
		{"it does not fall", []packet{{20000, 1452}, {20000, 1252}}, 1452},
		{"probes are not it", append([]packet{{1200, 1200}}, repeat(3, packet{1400, 0})...), 1200},
		{"filled packets are", repeat(sureAfter, packet{1400, 0}), 1400},
		{"packets of any size are not", []packet{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 0}, {9, 0}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Path
			for _, s := range c.sent {
				p.sent(s.n, s.segment)
			}
			if got := p.MTU(); got != c.want {
				t.Errorf("MTU %d, want %d", got, c.want)
			}
		})
	}
}

func TestWatchPath(t *testing.T) {
	c, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	to := c.LocalAddr().(*net.UDPAddr)
	mapped := &net.UDPAddr{IP: to.IP.To16(), Port: to.Port}
	one, two := c.WatchPath(to), c.WatchPath(mapped)
	if one != two {
		t.Error("one peer, two paths")
	}
	send := func(n int) {
		for range sureAfter {
			if _, _, err := c.WriteMsgUDP(make([]byte, n), nil, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(1000)
	if got := one.MTU(); got != 1000 {
		t.Errorf("MTU %d after filled packets of 1000", got)
	}
	one.Release()
	send(1100)
	if got := two.MTU(); got != 1100 {
		t.Errorf("MTU %d, want the path watched until its last user leaves", got)
	}
	two.Release()
	if len(c.paths.watched) != 0 {
		t.Errorf("%d paths are still watched", len(c.paths.watched))
	}
	send(1200)
	other := c.WatchPath(&net.UnixAddr{})
	if other.MTU() != 0 {
		t.Error("a path that is not UDP's has an MTU")
	}
	other.Release()
}

func TestWriteMsgUDP(t *testing.T) {
	for local, peers := range map[string][]net.IP{
		"127.0.0.1:0": {net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 1).To4()},
		"[::1]:0":     {net.IPv6loopback},
		"[::]:0":      {net.IPv6loopback, net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 1).To4()},
	} {
		c, err := Listen(local, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b := make([]byte, 10)
		for _, ip := range peers {
			to := &net.UDPAddr{IP: ip, Port: c.LocalAddr().(*net.UDPAddr).Port}
			send := func() {
				if n, _, err := c.WriteMsgUDP(b, nil, to); n != len(b) || err != nil {
					t.Fatalf("from %s to %v: %d, %v", local, to, n, err)
				}
			}
			if n := testing.AllocsPerRun(20, send); n != 0 {
				t.Errorf("from %s to %v: %v allocations", local, to, n)
			}
		}
		if _, _, err := c.WriteMsgUDP(b, nil, nil); err == nil {
			t.Error("sends to nobody")
		}
	}
}
