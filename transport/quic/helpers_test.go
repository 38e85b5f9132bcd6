package quic

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/tlsconfig"
)

// patience bounds every wait of these tests; it is not a measurement.
const patience = 20 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until ok, looking again and again.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not come about: %s", what)
		}
	}
}

// ends are the two endpoints of a test.
type ends struct {
	ca       *tlsconfig.DevCA
	listener *Listener
	dialer   *Dialer
}

// newEnds listens on loopback and makes a dialer, closed at the test's end.
// Either change may be nil.
func newEnds(t testing.TB, listen func(*ListenOptions), dial func(*DialOptions)) *ends {
	t.Helper()
	return newEndsOn(t, "127.0.0.1:0", listen, dial)
}

func newEndsOn(t testing.TB, addr string, listen func(*ListenOptions), dial func(*DialOptions)) *ends {
	t.Helper()
	ca, err := tlsconfig.NewDevCA(tlsconfig.DevOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := &ends{ca: ca}
	var lo ListenOptions
	if lo.TLS, err = ca.Server(); err != nil {
		t.Fatal(err)
	}
	if listen != nil {
		listen(&lo)
	}
	if e.listener, err = Listen(addr, lo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.listener.Close(); err != nil {
			t.Errorf("close listener: %v", err)
		}
	})
	e.dialer = e.newDialer(t, dial)
	return e
}

func (e *ends) newDialer(t testing.TB, change func(*DialOptions)) *Dialer {
	t.Helper()
	var o DialOptions
	var err error
	if o.TLS, err = e.ca.Client(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&o)
	}
	d, err := NewDialer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close dialer: %v", err)
		}
	})
	return d
}

func (e *ends) addr() string { return e.listener.Addr().String() }

// connect makes one connection.
func (e *ends) connect(t testing.TB) (client, server transport.Conn) {
	t.Helper()
	return e.connectFrom(t, e.dialer)
}

func (e *ends) connectFrom(t testing.TB, d *Dialer) (client, server transport.Conn) {
	t.Helper()
	ctx := testContext(t)
	client, err := d.Dial(ctx, e.addr())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = e.listener.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// openStream opens a stream on one side, says hello on it, and accepts it on
// the other.
func openStream(t testing.TB, from, to transport.Conn) (near, far transport.Stream) {
	t.Helper()
	ctx := testContext(t)
	near, err := from.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(t, near, "hello")
	if far, err = to.AcceptStream(ctx); err != nil {
		t.Fatal(err)
	}
	read(t, far, "hello")
	return near, far
}

// openUni is openStream for a unidirectional stream.
func openUni(t testing.TB, from, to transport.Conn) (transport.SendStream, transport.ReceiveStream) {
	t.Helper()
	ctx := testContext(t)
	near, err := from.OpenUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(t, near, "hello")
	far, err := to.AcceptUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	read(t, far, "hello")
	return near, far
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

func read(t testing.TB, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatalf("read %q: got %q, %v", want, got, err)
	}
	if string(got) != want {
		t.Fatalf("read %q, want %q", got, want)
	}
}

func hasIPv6(t testing.TB) bool {
	t.Helper()
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		return false
	}
	c.Close()
	return true
}
