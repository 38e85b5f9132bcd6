package quic

import (
	"bytes"
	"crypto/sha256"
	"io"
	"log"
	"net"
	"sync/atomic"
	"testing"
)

func TestIPv6(t *testing.T) {
	if !hasIPv6(t) {
		t.Log("no IPv6 loopback on this host: nothing to test")
		return
	}
	e := newEndsOn(t, "[::1]:0", nil, nil)
	client, server := e.connect(t)
	near, far := openStream(t, client, server)
	copyThrough(t, near, far, mib)
	if got := server.RemoteAddr().(*net.UDPAddr); !got.IP.Equal(net.IPv6loopback) {
		t.Errorf("peer is %v", got)
	}
	// One socket of both families serves both.
	both := newEndsOn(t, "[::]:0", nil, nil)
	_, port, _ := net.SplitHostPort(both.addr())
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		c, err := both.dialer.Dial(testContext(t), net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("dial %s: %v", host, err)
			continue
		}
		s, err := both.listener.Accept(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		openStream(t, c, s)
	}
}

// copyThrough sends n bytes and checks that they arrive.
func copyThrough(t *testing.T, w io.Writer, r io.Reader, n int) {
	t.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := w.Write(data)
		wrote <- err
	}()
	got := make([]byte, n)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, wrote); err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(got) != sha256.Sum256(data) {
		t.Fatal("what arrived is not what was sent")
	}
}

// Every receive path carries the same bytes, both ways at once.
func TestReceivePaths(t *testing.T) {
	for name, plain := range map[string]bool{"coalesced": false, "one by one": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t,
				func(o *ListenOptions) { o.Socket.DisableGRO = plain },
				func(o *DialOptions) { o.Socket.DisableGRO = plain })
			client, server := e.connect(t)
			near, far := openStream(t, client, server)
			back := make(chan struct{})
			go func() {
				defer close(back)
				copyThrough(t, far, near, mib)
			}()
			copyThrough(t, near, far, mib)
			receive(t, back)
			if plain && (client.Stats().GRO || server.Stats().GRO) {
				t.Error("stats tell of GRO that is switched off")
			}
			if s := e.listener.Socket(); s.Packets == 0 || s.Reads == 0 || s.Truncated != 0 || s.ReceiveBuffer == 0 {
				t.Errorf("socket counters: %+v", s)
			}
		})
	}
}

// Ordinary loss costs neither the connection nor the packet size (BR-08).
func TestLossKeepsMTU(t *testing.T) {
	e := newEnds(t, nil, nil)
	relay := newRelay(t, e.addr(), 50)
	client, err := e.dialer.Dial(testContext(t), relay)
	if err != nil {
		t.Fatal(err)
	}
	server, err := e.listener.Accept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	near, far := openUni(t, client, server)
	mtu := 0
	for range 4 {
		copyThrough(t, near, far, mib)
		now := client.Stats().MTU
		if now < mtu {
			t.Errorf("MTU fell from %d to %d", mtu, now)
		}
		mtu = now
	}
	if s := client.Stats(); s.PacketsLost == 0 || s.MTU < 1400 {
		t.Errorf("lost %d, MTU %d: want loss and a full MTU", s.PacketsLost, s.MTU)
	}
}

// newRelay forwards UDP between one client and to, and drops one packet in
// every few, both ways.
func newRelay(t *testing.T, to string, every int64) string {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close(); back.Close() })
	var client atomic.Pointer[net.Addr]
	forward := func(read func([]byte) (int, error), write func([]byte)) {
		buf := make([]byte, 64*kib)
		// The handshake passes; it has tests of its own.
		for i := int64(-20); ; i++ {
			n, err := read(buf)
			if err != nil {
				return
			}
			if i < 0 || i%every != 0 {
				write(buf[:n])
			}
		}
	}
	go forward(func(b []byte) (int, error) {
		n, from, err := front.ReadFrom(b)
		if err == nil {
			client.Store(&from)
		}
		return n, err
	}, func(b []byte) { back.Write(b) })
	go forward(back.Read, func(b []byte) { front.WriteTo(b, *client.Load()) })
	return front.LocalAddr().String()
}

// quic-go's own complaint about buffers goes to the standard logger. It must
// not, however small the buffers: package udp reports them.
func TestBuffersAreNotReportedTwice(t *testing.T) {
	var printed bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&printed)
	small := func(o *ListenOptions) { o.Socket.ReceiveBuffer, o.Socket.SendBuffer = 64*kib, 64*kib }
	e := newEnds(t, small, nil)
	e.connect(t)
	seen, ok := e.listener.socket.tr.Conn.(*sized)
	if !ok || !seen.read.Load() || !seen.written.Load() {
		t.Error("quic-go did not see buffers that are in order")
	}
	if printed.Len() > 0 {
		t.Errorf("printed: %s", &printed)
	}
	// As they are now, not as they were set.
	receive, send := kernelBuffers(t, e.listener.socket.udp)
	if receive > 256*kib || send > 256*kib {
		t.Errorf("quic-go resized the buffers to %d and %d", receive, send)
	}
}
