package quic

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/felixlog/felix/transport"
)

func TestCloseReachesPeer(t *testing.T) {
	e := newEnds(t, nil, nil)
	for _, c := range []struct {
		name   string
		code   uint64
		reason string
		heard  string
	}{
		{"drained", 0, "broker shutting down", "broker shutting down"},
		{"unauthenticated", 1, "authentication timeout", "authentication timeout"},
		{"large code, no text", 1<<62 - 1, "", ""},
		{"text is cut at a whole rune", 7, "x" + strings.Repeat("é", 200), "x" + strings.Repeat("é", 127)},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := e.connect(t)
			near, far := openStream(t, client, server)
			if err := server.Close(c.code, c.reason); err != nil {
				t.Fatal(err)
			}
			expectClosed := func(what string, err error, remote bool) {
				t.Helper()
				var closed *transport.CloseError
				if !errors.As(err, &closed) || closed.Code != c.code || closed.Reason != c.heard ||
					closed.Remote != remote || !closed.Application || !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s: %#v", what, err)
				}
			}
			if server.Context().Err() == nil {
				t.Error("context lives after Close returned")
			}
			expectClosed("closer's context", context.Cause(server.Context()), false)
			expectClosed("peer's context", context.Cause(waitDone(t, client.Context())), true)
			_, err := near.Read(make([]byte, 1))
			expectClosed("peer's read", err, true)
			_, err = near.Write([]byte("x"))
			expectClosed("peer's write", err, true)
			_, err = far.Read(make([]byte, 1))
			expectClosed("closer's read", err, false)
			_, err = client.OpenStream(context.Background())
			expectClosed("peer's open", err, true)
			_, err = client.AcceptUniStream(context.Background())
			expectClosed("peer's accept", err, true)
			expectClosed("stream's context", context.Cause(waitDone(t, near.Context())), true)
		})
	}
}

func TestConnDescribesItself(t *testing.T) {
	e := newEnds(t, nil, nil)
	client, server := e.connect(t)
	if got := client.RemoteAddr().String(); got != e.addr() {
		t.Errorf("client's remote address is %s, want %s", got, e.addr())
	}
	if got := server.LocalAddr().String(); got != e.addr() {
		t.Errorf("server's local address is %s, want %s", got, e.addr())
	}
	if got := client.PeerCertificates(); len(got) == 0 || got[0].VerifyHostname("localhost") != nil {
		t.Errorf("client sees server certificates %v", got)
	}
	if got := server.PeerCertificates(); len(got) != 0 {
		t.Errorf("server sees client certificates %v", got)
	}

	// Enough traffic to find the path's packet size, on loopback quic-go's
	// largest.
	near, far := openUni(t, client, server)
	go func() {
		chunk := make([]byte, 64*kib)
		for {
			if _, err := near.Write(chunk); err != nil {
				return
			}
		}
	}()
	go io.Copy(io.Discard, far)
	eventually(t, "both sides know RTT, MTU and counts", func() bool {
		c, s := client.Stats(), server.Stats()
		return c.MTU >= 1400 && c.SmoothedRTT > 0 && s.SmoothedRTT > 0 && s.MTU >= 1200 &&
			c.PacketsSent > 100 && s.PacketsReceived > 100 && c.BytesSent > 100_000 && s.BytesReceived > 100_000
	})
	if c := client.Stats(); c.MTU > 1500 {
		t.Errorf("MTU is %d", c.MTU)
	}
	if e.listener.Conns() != 1 || e.dialer.Conns() != 1 {
		t.Errorf("listener has %d connections, dialer %d, want 1 and 1", e.listener.Conns(), e.dialer.Conns())
	}
	client.Close(0, "")
	eventually(t, "both ends forget the connection", func() bool {
		return e.listener.Conns() == 0 && e.dialer.Conns() == 0
	})
}

func TestAcceptAndOpenEndWithContext(t *testing.T) {
	e := newEnds(t, func(o *ListenOptions) { o.MaxStreams, o.MaxUniStreams = 1, -1 }, nil)
	client, server := e.connect(t)
	openStream(t, client, server)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for what, call := range map[string]func() error{
		"accept stream":       func() error { _, err := server.AcceptStream(ctx); return err },
		"accept uni stream":   func() error { _, err := server.AcceptUniStream(ctx); return err },
		"open second of one":  func() error { _, err := client.OpenStream(ctx); return err },
		"open uni where none": func() error { _, err := client.OpenUniStream(ctx); return err },
		"accept connection":   func() error { _, err := e.listener.Accept(ctx); return err },
		"dial":                func() error { _, err := e.dialer.Dial(ctx, e.addr()); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
}
