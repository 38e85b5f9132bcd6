package quic

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/felixlog/felix/transport"
)

func TestStopAccepting(t *testing.T) {
	e := newEnds(t, nil, nil)
	client, server := e.connect(t)
	// One has finished its handshake and waits.
	if _, err := e.dialer.Dial(testContext(t), e.addr()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.listener.StopAccepting(); err != nil {
			t.Fatal(err)
		}
	}
	expectRefused(t, e.dialer, e.addr())
	for range 2 {
		// The one that waited is either handed out or was refused in flight.
		if _, err := e.listener.Accept(testContext(t)); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept: %v, want net.ErrClosed", err)
			}
			break
		}
	}
	if _, err := e.listener.Accept(testContext(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after the last: %v, want net.ErrClosed", err)
	}
	openStream(t, client, server)
	openStream(t, server, client)
}

// Close tells every peer, the accepted and the waiting.
func TestListenerCloseTellsPeers(t *testing.T) {
	e := newEnds(t, nil, nil)
	accepted, _ := e.connect(t)
	waiting, err := e.dialer.Dial(testContext(t), e.addr())
	if err != nil {
		t.Fatal(err)
	}
	openStreamOnly(t, waiting)
	for range 2 {
		if err := e.listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []transport.Conn{accepted, waiting} {
		var closed *transport.CloseError
		if cause := context.Cause(waitDone(t, c.Context())); !errors.As(cause, &closed) || !closed.Remote {
			t.Errorf("peer is told %#v, want a close", cause)
		}
	}
	if _, err := e.listener.Accept(testContext(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v, want net.ErrClosed", err)
	}
	if err := e.listener.StopAccepting(); err != nil {
		t.Errorf("stop accepting after close: %v", err)
	}
	// The port is free again.
	conf, err := e.ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Listen(e.addr(), ListenOptions{TLS: conf})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func openStreamOnly(t *testing.T, c transport.Conn) {
	t.Helper()
	s, err := c.OpenStream(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "hello")
}

func TestDialerCloseTellsPeers(t *testing.T) {
	e := newEnds(t, nil, nil)
	_, server := e.connect(t)
	for range 2 {
		if err := e.dialer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var closed *transport.CloseError
	if cause := context.Cause(waitDone(t, server.Context())); !errors.As(cause, &closed) || !closed.Application || !closed.Remote {
		t.Errorf("server is told %#v, want a close", cause)
	}
	if _, err := e.dialer.Dial(testContext(t), e.addr()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial after close: %v, want net.ErrClosed", err)
	}
}

// With a key that outlives the process, clients of a server that was lost
// without a word learn of it from the next one.
func TestResetKey(t *testing.T) {
	key := [32]byte{1, 2, 3}
	e := newEnds(t, func(o *ListenOptions) { o.ResetKey = &key }, nil)
	client, server := e.connect(t)
	near, _ := openStream(t, client, server)
	if err := e.listener.socket.close(); err != nil {
		t.Fatal(err)
	}
	conf, err := e.ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	next, err := Listen(e.addr(), ListenOptions{TLS: conf, ResetKey: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	write(t, near, "anybody there?")
	cause := context.Cause(waitDone(t, client.Context()))
	var closed *transport.CloseError
	if !errors.As(cause, &closed) || !closed.Remote || closed.Application || errors.Is(cause, transport.ErrIdleTimeout) {
		t.Errorf("cause: %#v, want the peer's reset", cause)
	}
}

func TestListenErrors(t *testing.T) {
	if _, err := Listen("127.0.0.1:0", ListenOptions{}); err == nil {
		t.Error("listens without TLS")
	}
	if _, err := NewDialer(DialOptions{}); err == nil {
		t.Error("dials without TLS")
	}
	e := newEnds(t, nil, nil)
	conf, err := e.ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(e.addr(), ListenOptions{TLS: conf}); err == nil {
		t.Error("listens on a taken port")
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:nonsense", ":"} {
		if _, err := e.dialer.Dial(testContext(t), addr); err == nil {
			t.Errorf("dials %q", addr)
		}
	}
}

// A crowd that comes at once is let in, if somebody accepts.
func TestBurstOfConnections(t *testing.T) {
	const crowd = 80
	e := newEnds(t, nil, nil)
	ctx := testContext(t)
	accepted := make(chan error, 1)
	go func() {
		for range crowd {
			if _, err := e.listener.Accept(ctx); err != nil {
				accepted <- err
				return
			}
		}
		accepted <- nil
	}()
	var dials sync.WaitGroup
	for range crowd {
		dials.Go(func() {
			if _, err := e.dialer.Dial(ctx, e.addr()); err != nil {
				t.Error(err)
			}
		})
	}
	dials.Wait()
	if err := receive(t, accepted); err != nil {
		t.Error(err)
	}
}
