package conformance

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// TestUnauthenticatedPeers: a connection on which nothing authenticates is
// closed with the documented code, whatever it dribbles meanwhile (wire 2.5).
func TestUnauthenticatedPeers(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auth-timeout-ms", "500"))
	n.CreateCache("primary")
	check := flatness(t, 8<<20)
	header := authFrame(n.Token()).Append(nil)
	for name, dribble := range map[string]int{"nothing": -1, "0 bytes": 0, "1 byte": 1, "3 bytes": 3, "11 bytes": 11, "half a payload": 40} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, n)
			for range 100 {
				if dribble < 0 {
					break
				}
				s := c.open()
				s.bytes(header[:dribble])
			}
			select {
			case <-c.quic.Context().Done():
			case <-time.After(patience):
				t.Fatal("the connection is still open")
			}
			var closed *quic.ApplicationError
			if err := context.Cause(c.quic.Context()); !errors.As(err, &closed) ||
				closed.ErrorCode != 1 || closed.ErrorMessage != "authentication timeout" {
				t.Fatalf("closed with %v", err)
			}
		})
	}
	t.Run("one success lifts it", func(t *testing.T) {
		c := dialRaw(t, n)
		s := c.openUni()
		s.frames(authFrame(n.Token()))
		s.fin()
		// The token of the connection above has long been refused by the time
		// one that began later is.
		later := dialRaw(t, n)
		select {
		case <-later.quic.Context().Done():
		case <-time.After(patience):
			t.Fatal("the later connection is still open")
		}
		c.legacy().wantAlive()
		c.quic.CloseWithError(0, "")
	})
	check()
}

// TestUnauthenticatedStreams: at most 16 streams of a connection are read
// before they authenticate; others wait for one of them to end (wire 2.5).
func TestUnauthenticatedStreams(t *testing.T) {
	n := felixtest.Start(t)
	n.CreateCache("primary")
	c := dialRaw(t, n)
	witness := c.legacy()
	var held []*rawStream
	for range 16 {
		s := c.open()
		s.bytes([]byte("FLX"))
		held = append(held, s)
	}
	// By the time these are answered the node has the held streams in hand.
	for range 50 {
		witness.wantAlive()
	}
	waiting := c.open()
	waiting.frames(authFrame(n.Token()))
	waiting.both.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if f, err := raw.ReadFrame(waiting.both, readMax); err == nil {
		t.Fatalf("a 17th stream was read: %s", f.Describe())
	} else if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a 17th stream ended: %v", err)
	}
	held[0].abandon()
	waiting.wantText(`{"type":"ok"}`)
	waiting.wantAlive()
	for _, s := range held[1:] {
		s.abandon()
	}
	c.legacy().wantAlive()
}

// TestHalfHeadersBeforeAuth: a stream that sends part of a header and then
// nothing is given up within the authentication deadline, also on a connection
// that has authenticated, and frees its place (BR-05).
func TestHalfHeadersBeforeAuth(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auth-timeout-ms", "500"))
	n.CreateCache("primary")
	c := dialRaw(t, n)
	c.legacy().wantAlive()
	var held []*rawStream
	for i := range 64 {
		s := c.open()
		s.bytes([]byte("FLX1\x00\x01\x00\x00\x00\x00\x00")[:1+i%11])
		held = append(held, s)
	}
	// Four times as many as are read at once: those that wait go as well.
	for _, s := range held {
		s.wantEnd()
		s.wantStopped()
	}
	c.legacy().wantAlive()
}
