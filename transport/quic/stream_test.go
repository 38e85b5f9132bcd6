package quic

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
)

func TestStreamRoles(t *testing.T) {
	e := newEnds(t, nil, nil)
	client, server := e.connect(t)
	for name, side := range map[string]struct{ from, to transport.Conn }{
		"client opens": {client, server},
		"server opens": {server, client},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := openStream(t, side.from, side.to)
			if near.StreamID() != far.StreamID() {
				t.Errorf("stream is %d here and %d there", near.StreamID(), far.StreamID())
			}
			write(t, far, "answer")
			read(t, near, "answer")
			for _, s := range []transport.Stream{near, far} {
				if err := s.CloseWrite(); err != nil {
					t.Errorf("close write: %v", err)
				}
			}
			for _, s := range []transport.Stream{near, far} {
				if _, err := s.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("read after the peer's FIN: %v, want io.EOF", err)
				}
			}

			send, receive := openUni(t, side.from, side.to)
			if send.StreamID() != receive.StreamID() {
				t.Errorf("uni stream is %d here and %d there", send.StreamID(), receive.StreamID())
			}
			if err := send.CloseWrite(); err != nil {
				t.Error(err)
			}
			if _, err := receive.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("read after the peer's FIN: %v, want io.EOF", err)
			}
		})
	}
}

// A FIN ends one direction only and delivers all that was written before it.
func TestFinLeavesOtherHalfOpen(t *testing.T) {
	e := newEnds(t, nil, nil)
	client, server := e.connect(t)
	near, far := openStream(t, client, server)
	write(t, near, "request")
	if err := near.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(far)
	if err != nil || string(got) != "request" {
		t.Fatalf("read %q, %v", got, err)
	}
	if _, err := near.Write([]byte("more")); !errors.Is(err, transport.ErrWriteClosed) {
		t.Errorf("write after CloseWrite: %v, want ErrWriteClosed", err)
	}
	if cause := context.Cause(waitDone(t, near.Context())); !errors.Is(cause, transport.ErrWriteClosed) {
		t.Errorf("cause of the write half's end: %v, want ErrWriteClosed", cause)
	}
	write(t, far, "reply")
	read(t, near, "reply")
}

// RESET reaches the reader with its code, whatever was in flight, and leaves
// the connection alone.
func TestResetReachesReader(t *testing.T) {
	e := newEnds(t, nil, nil)
	client, server := e.connect(t)
	near, far := openStream(t, client, server)
	near.CancelWrite(17)
	_, err := io.Copy(io.Discard, far)
	var reset *transport.ResetError
	if !errors.As(err, &reset) || reset.Code != 17 || !reset.Remote {
		t.Fatalf("read after RESET: %#v, want remote ResetError 17", err)
	}
	// Here the half was given up locally.
	if _, err := near.Write([]byte("x")); !errors.As(err, &reset) || reset.Code != 17 || reset.Remote {
		t.Errorf("write after CancelWrite: %#v, want local ResetError 17", err)
	}
	if err := near.CloseWrite(); !errors.As(err, &reset) || reset.Remote {
		t.Errorf("CloseWrite after CancelWrite: %#v, want local ResetError", err)
	}
	write(t, far, "the other half works")
	read(t, near, "the other half works")
	openStream(t, client, server)
}

// STOP_SENDING fails a writer that is blocked, ends the half's context with
// the peer's code, and leaves the other half alone (BR-07).
func TestStopSendingUnblocksWriter(t *testing.T) {
	e := newEnds(t, nil, func(o *DialOptions) {
		o.Windows = Windows{Stream: 64 * kib, Conn: 64 * kib}
	})
	client, server := e.connect(t)
	near, far := openStream(t, client, server)
	wrote := make(chan error, 1)
	go func() {
		_, err := far.Write(make([]byte, mib)) // the peer's window takes 64 KiB
		wrote <- err
	}()
	read(t, near, "\x00\x00\x00")
	near.CancelRead(9)
	var reset *transport.ResetError
	if err := receive(t, wrote); !errors.As(err, &reset) || reset.Code != 9 || !reset.Remote {
		t.Fatalf("blocked write: %#v, want remote ResetError 9", err)
	}
	cause := context.Cause(waitDone(t, far.Context()))
	if !errors.As(cause, &reset) || reset.Code != 9 || !reset.Remote {
		t.Errorf("cause of the write half's end: %#v, want remote ResetError 9", cause)
	}
	if err := far.TryWrite([]byte("x")); !errors.As(err, &reset) {
		t.Errorf("TryWrite after STOP_SENDING: %v, want ResetError", err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.As(err, &reset) || reset.Remote {
		t.Errorf("read after CancelRead: %v, want local ResetError", err)
	}
	write(t, near, "still here")
	read(t, far, "still here")
}

func TestTryWrite(t *testing.T) {
	const window = 64 * kib
	e := newEnds(t, nil, func(o *DialOptions) {
		o.Windows = Windows{Stream: window, Conn: window}
	})
	client, server := e.connect(t)
	near, far := openStream(t, client, server)

	// All or nothing: what cannot fit now leaves no part behind.
	if err := far.TryWrite(make([]byte, window+1)); err != transport.ErrWouldBlock {
		t.Fatalf("TryWrite of more than the window: %v, want ErrWouldBlock", err)
	}
	piece := make([]byte, 8*kib)
	taken := 0
	for {
		err := far.TryWrite(piece)
		if err == transport.ErrWouldBlock {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if taken += len(piece); taken > window {
			t.Fatalf("TryWrite took %d bytes into a window of %d that nobody reads", taken, window)
		}
	}
	if taken != window {
		t.Errorf("TryWrite filled %d of a window of %d", taken, window)
	}
	if _, err := io.ReadFull(near, make([]byte, taken)); err != nil {
		t.Fatal(err)
	}
	// Reading opens the window again.
	eventually(t, "TryWrite succeeds after the peer has read", func() bool { return far.TryWrite([]byte("again")) == nil })
	read(t, near, "again")
}

func TestDeadlines(t *testing.T) {
	e := newEnds(t, nil, func(o *DialOptions) {
		o.Windows = Windows{Stream: 64 * kib, Conn: 64 * kib}
	})
	client, server := e.connect(t)
	near, far := openStream(t, client, server)

	// One that has passed already, and one that passes while the call waits.
	for _, wait := range []time.Duration{-time.Second, 5 * time.Millisecond} {
		near.SetReadDeadline(time.Now().Add(wait))
		_, err := near.Read(make([]byte, 1))
		expectDeadline(t, "read", err)
		far.SetWriteDeadline(time.Now().Add(wait))
		_, err = far.Write(make([]byte, mib))
		expectDeadline(t, "write", err)
	}
	near.SetReadDeadline(time.Time{})
	if _, err := io.ReadFull(near, make([]byte, 100)); err != nil {
		t.Errorf("read without deadline: %v", err)
	}
}

func expectDeadline(t *testing.T, what string, err error) {
	t.Helper()
	var timeout interface{ Timeout() bool }
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%s past its deadline: %v, want os.ErrDeadlineExceeded", what, err)
	}
}

func waitDone(t testing.TB, ctx context.Context) context.Context {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("context does not end")
	}
	return ctx
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing received")
		panic("unreachable")
	}
}
