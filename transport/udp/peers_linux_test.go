package udp

import (
	"net"
	"testing"
)

func TestPeersAreSharedAndBounded(t *testing.T) {
	var p peers
	key := func(i int) peerKey {
		return peerKey{v4: true, ip: [16]byte{10, 0, byte(i >> 8), byte(i)}, port: uint16(i)}
	}
	first := p.lookup(key(1))
	if first.addr.String() != "10.0.0.1:1" || first.ap.String() != "10.0.0.1:1" {
		t.Errorf("address %v, %v", first.addr, first.ap)
	}
	p.lookup(key(2))
	if p.lookup(key(1)) != first {
		t.Error("a known peer is made anew")
	}
	for i := range 5 * maxPeers {
		p.lookup(key(i))
		if len(p.known) > maxPeers {
			t.Fatalf("%d addresses are kept", len(p.known))
		}
	}
	if got := p.lookup(key(1)); got.ap != first.ap {
		t.Errorf("forgotten peer comes back as %v", got.ap)
	}
	changed := first.copyAddr()
	changed.IP[0] = 99
	if first.addr.IP[0] != 10 {
		t.Error("a reader's copy is not its own")
	}
}

func TestPeerZone(t *testing.T) {
	var loopback *net.Interface
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = &i
			break
		}
	}
	if loopback == nil {
		t.Fatal("no loopback interface")
	}
	ip := [16]byte{0xfe, 0x80, 15: 1}
	at := func(zone int) *peer { return peerKey{ip: ip, port: 7, zone: uint32(zone)}.peer() }
	if p := at(loopback.Index); p.addr.Zone != loopback.Name || p.ap.Addr().Zone() != loopback.Name {
		t.Errorf("zone %q, want %q", p.addr.Zone, loopback.Name)
	}
	if p := at(1 << 20); p.addr.Zone != "1048576" {
		t.Errorf("zone of no interface is %q", p.addr.Zone)
	}
	if p := at(0); p.addr.Zone != "" {
		t.Errorf("zone %q where there is none", p.addr.Zone)
	}
}
