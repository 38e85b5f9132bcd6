package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// patience bounds every wait of these tests; it is not a measurement.
const patience = 10 * time.Second

// variants are the receive paths; all tests of sockets run on each.
var variants = map[string]Options{
	"coalesced":          {},
	"one by one":         {DisableGRO: true},
	"coalesced, polling": {Poll: 100 * time.Microsecond},
	"one by one, polling": {
		DisableGRO: true, Poll: 100 * time.Microsecond, PollBudget: NewPollBudget(1),
	},
}

func eachVariant(t *testing.T, test func(t *testing.T, o Options)) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

func open(t testing.TB, addr string, o Options) *Conn {
	t.Helper()
	c, err := Listen(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if c.GRO() == o.DisableGRO {
		t.Fatalf("GRO is %v", c.GRO())
	}
	c.SetReadDeadline(time.Now().Add(patience))
	return c
}

// A sender sends to one address.
type sender struct {
	*net.UDPConn
	to *net.UDPAddr
}

func newSender(t testing.TB, to *Conn) *sender {
	t.Helper()
	addr := to.LocalAddr().(*net.UDPAddr)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: addr.IP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &sender{c, addr}
}

// send sends a datagram with control messages.
func (s *sender) send(t testing.TB, b []byte, oob ...[]byte) {
	t.Helper()
	if _, _, err := s.WriteMsgUDP(b, slices.Concat(oob...), s.to); err != nil {
		t.Fatal(err)
	}
}

func (s *sender) addr() netip.AddrPort { return s.LocalAddr().(*net.UDPAddr).AddrPort() }

// cmsg is one control message.
func cmsg(level, kind int, body []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(body)))
	length := uint64(unix.CmsgLen(len(body)))
	if unix.SizeofPtr == 8 {
		binary.NativeEndian.PutUint64(b, length)
	} else {
		binary.NativeEndian.PutUint32(b, uint32(length))
	}
	binary.NativeEndian.PutUint32(b[unix.SizeofPtr:], uint32(level))
	binary.NativeEndian.PutUint32(b[unix.SizeofPtr+4:], uint32(kind))
	copy(b[unix.CmsgLen(0):], body)
	return b
}

// segmented asks the kernel to cut what is sent into packets of n bytes.
func segmented(n int) []byte {
	return cmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, uint16(n)))
}

// newMessages are as quic-go makes them.
func newMessages(n, size int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, size)}
		ms[i].OOB = make([]byte, 128)
	}
	return ms
}

// A packet is one that was received.
type packet struct {
	data string
	oob  string
	from netip.AddrPort
}

// readBatches reads want packets in batches.
func readBatches(t testing.TB, c *Conn, want, size int) []packet {
	t.Helper()
	ms := newMessages(8, size)
	var got []packet
	for len(got) < want {
		n, err := c.ReadBatch(ms, 0)
		if err != nil {
			t.Fatalf("after %d of %d packets: %v", len(got), want, err)
		}
		if n < 1 || n > len(ms) {
			t.Fatalf("ReadBatch filled %d messages", n)
		}
		for _, m := range ms[:n] {
			got = append(got, packet{
				string(m.Buffers[0][:m.N]), string(m.OOB[:m.NN]), m.Addr.(*net.UDPAddr).AddrPort(),
			})
		}
	}
	if len(got) > want {
		t.Fatalf("got %d packets, want %d", len(got), want)
	}
	return got
}

// readSingles reads want packets through each of the single-packet methods
// in turn.
func readSingles(t testing.TB, c *Conn, want, size int) []packet {
	t.Helper()
	b, oob := make([]byte, size), make([]byte, 128)
	var got []packet
	for i := range want {
		var p packet
		var n, oobn int
		var err error
		switch i % 4 {
		case 0:
			n, oobn, _, p.from, err = c.ReadMsgUDPAddrPort(b, oob)
		case 1:
			var from *net.UDPAddr
			if n, oobn, _, from, err = c.ReadMsgUDP(b, oob); err == nil {
				p.from = from.AddrPort()
			}
		case 2:
			n, p.from, err = c.ReadFromUDPAddrPort(b)
		case 3:
			var from net.Addr
			if n, from, err = c.ReadFrom(b); err == nil {
				p.from = from.(*net.UDPAddr).AddrPort()
			}
		}
		if err != nil {
			t.Fatalf("packet %d of %d: %v", i, want, err)
		}
		p.data, p.oob = string(b[:n]), string(oob[:oobn])
		got = append(got, p)
	}
	return got
}
