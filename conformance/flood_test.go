package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// flatness checks that a test leaves neither goroutines nor memory behind.
// Node and client share the process, so what the client keeps counts too; the
// slack for memory is far below what any of the floods declares.
func flatness(t *testing.T, heapSlack uint64) func() {
	t.Helper()
	before := settled()
	goroutines := runtime.NumGoroutine()
	return func() {
		t.Helper()
		const slack = 5 // timers and pools of the runtime and of quic-go
		until(t, "goroutines are back", func() error {
			if n := runtime.NumGoroutine(); n > goroutines+slack {
				return fmt.Errorf("%d goroutines, %d before", n, goroutines)
			}
			return nil
		})
		until(t, "memory is back", func() error {
			if after := settled(); after > before+heapSlack {
				return fmt.Errorf("%d KiB of heap in use, %d before", after>>10, before>>10)
			}
			return nil
		})
	}
}

// settled is the heap in use after a collection.
func settled() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// until polls a condition, with patience.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// abandon ends both halves of a stream from this side.
func (s *rawStream) abandon() {
	if s.both != nil {
		s.both.CancelRead(0)
		s.both.CancelWrite(0)
		return
	}
	s.send.CancelWrite(0)
}

// TestHugeDeclarations sends headers and counts that promise what never
// comes (BR-02): refused on the promise, at no cost in memory.
func TestHugeDeclarations(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	check := flatness(t, 8<<20)
	const rounds = 100
	for range rounds {
		for _, auth := range []bool{false, true} {
			open := h.open
			if auth {
				open = h.legacy
			}
			s := open()
			s.bytes(raw.AppendHeader(nil, raw.FlagPublishBatch, 0xFFFF_FFFF))
			s.wantEnd()
			s.wantStopped()
		}
		// The longest frame a stream may announce before it authenticated
		// is 64 KiB: one byte more ends it.
		s := h.open()
		s.bytes(raw.AppendHeader(nil, 0, 64<<10+1))
		s.wantEnd()
		s.wantStopped()
	}
	s := h.session()
	for i := range rounds {
		payload := raw.AppendString16(nil, "t1")
		payload = raw.AppendString16(payload, "default")
		payload = raw.AppendString16(payload, "s")
		payload = append(payload, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1, 'x')
		prefix := []byte{0, 0, 0, 0, 0, 0, 0, byte(i), 2}
		s.frames(raw.Frame{Flags: raw.FlagPublishBatch | raw.FlagPublishAcked, Payload: append(prefix, payload...)})
		s.wantFailedAck(uint64(i), codeInvalidRequest, "malformed publish batch")
	}
	s.abandon()
	check()
	h.bystander.wantAlive()
}

// TestNestedJSON sends JSON that recursive or eager decoders choke on.
func TestNestedJSON(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	check := flatness(t, 24<<20)
	for _, text := range []string{
		strings.Repeat("[", 16<<20),
		strings.Repeat(`{"a":`, 2<<20),
		`{"type":"topology","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}",
		`{"type":"` + strings.Repeat("x", 8<<20),
		`{` + strings.Repeat(`"a":0,`, 1<<20),
	} {
		for range 3 {
			s := h.session()
			if err := s.write(raw.JSON(text).Append(nil)); err != nil && s.sendContext().Err() == nil {
				t.Fatalf("send: %v", err)
			}
			s.wantEnd()
			s.wantStopped()
		}
	}
	check()
	h.bystander.wantAlive()
}

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

// TestHalfFrames leaves streams in the middle of a header and of a payload
// (BR-05). The node may wait for the rest for as long as it documents; when
// the client gives up, nothing of them may stay.
func TestHalfFrames(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	check := flatness(t, 16<<20)
	whole := acked(1, "s", strings.Repeat("x", 4096)).Frame().Append(nil)
	c := dialRaw(t, h.node)
	var streams []*rawStream
	for _, n := range []int{0, 1, 3, 11, 12, 13, 500} {
		for range 40 {
			s := c.session()
			s.bytes(whole[:n])
			streams = append(streams, s)
		}
	}
	h.bystander.wantAlive()
	for i, s := range streams {
		switch i % 3 {
		case 0:
			s.abandon()
		case 1:
			// An end inside a header is a clean end of input; inside a
			// payload it is an error. Either way the stream is over.
			s.fin()
			s.wantEnd()
		case 2: // the connection's end takes care of it
		}
	}
	c.quic.CloseWithError(0, "")
	check()
	h.bystander.wantAlive()
}

// TestHalfBatchIsNotStored resets a stream in the middle of a publish batch
// (BR-07): nothing of it may reach anybody.
func TestHalfBatchIsNotStored(t *testing.T) {
	h := newHostile(t)
	sub := h.session()
	sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
	sub.frame()
	events := h.acceptEvents()
	events.frame()
	whole := acked(1, "s", "never", strings.Repeat("x", 100_000), "never").Frame().Append(nil)
	for i := range 60 {
		s := h.session()
		s.bytes(whole[:len(whole)-1-i*1500])
		if i%2 == 0 {
			s.both.CancelWrite(7)
		} else {
			s.fin()
		}
		s.wantEnd()
	}
	s := h.session()
	s.frames(acked(2, "s", "whole").Frame())
	s.frame()
	e, err := raw.ParseEvents(events.frame())
	if err != nil || len(e.Records) != 1 || string(e.Records[0]) != "whole" {
		t.Fatalf("first event after the halves: %v, %v", e, err)
	}
}

// TestSubscriberGoesAway ends event streams and connections in the middle of
// delivery (BR-07): their subscriptions go, others miss nothing.
func TestSubscriberGoesAway(t *testing.T) {
	h := newHostile(t)
	stays := h.session()
	stays.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
	stays.frame()
	events := h.acceptEvents()
	events.frame()
	publisher := h.session()
	check := flatness(t, 32<<20)
	const rounds = 120
	for i := range rounds {
		c := dialRaw(t, h.node)
		sub := c.session()
		sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
		sub.fin()
		sub.frame()
		leaving := c.acceptEvents()
		leaving.frame()
		publisher.frames(acked(uint64(i), "s", strings.Repeat("x", 20_000)).Frame())
		publisher.frame()
		switch i % 3 {
		case 0: // refuses the rest in the middle of the frame
			leaving.receive.CancelRead(3)
		case 1: // after one frame
			leaving.frame()
			leaving.receive.CancelRead(0)
		case 2: // connection and all
		}
		if i%3 == 2 {
			c.quic.CloseWithError(0, "")
		} else {
			// One more, so that the refusal meets a writer.
			publisher.frames(acked(uint64(rounds+i), "s", "small").Frame())
			publisher.frame()
			c.quic.CloseWithError(0, "")
		}
		for got := 0; got < 2-i%3/2; {
			e, err := raw.ParseEvents(events.frame())
			if err != nil {
				t.Fatal(err)
			}
			got += len(e.Records)
		}
	}
	until(t, "only one subscription is left", func() error {
		if n := h.node.Stats().Subscribe.Subscriptions; n != 1 {
			return fmt.Errorf("%d subscriptions", n)
		}
		return nil
	})
	check()
}

// TestStreamChurn opens many short streams on one connection, a third each
// ended by FIN, RESET and STOP_SENDING (BR-06).
func TestStreamChurn(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	churn := func(rounds int) {
		for i := range rounds {
			s := h.legacy()
			s.frames(cacheGet(uint64(i)))
			switch i % 3 {
			case 0:
				s.fin()
				s.frame()
				s.wantFIN()
			case 1:
				s.frame()
				s.abandon()
			case 2:
				s.both.CancelRead(0)
				_ = s.both.Close() // unless the node has had enough by now
			}
		}
	}
	churn(300) // pools and windows have their size now
	check := flatness(t, 4<<20)
	churn(3000)
	check()
	h.legacy().wantAlive()
}

// TestGarbage sends random bytes, and golden vectors with a few bits turned,
// on fresh streams, before and after auth. The seed is in the test's name.
func TestGarbage(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	vectors := goldenFrames(t)
	check := flatness(t, 16<<20)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := h.in(t)
			r := rand.New(rand.NewPCG(seed, 1))
			for range 100 {
				open := c.open
				if r.IntN(2) == 0 {
					open = c.legacy
				}
				s := open()
				b := make([]byte, r.IntN(400))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				if r.IntN(4) != 0 {
					b = append([]byte(nil), vectors[r.IntN(len(vectors))]...)
					for range 1 + r.IntN(4) {
						b[r.IntN(len(b))] ^= 1 << r.IntN(8)
					}
				}
				// The node may refuse the stream before all of it is sent.
				if s.write(b) == nil && r.IntN(3) != 0 {
					_ = s.both.Close()
				} else {
					s.both.CancelWrite(0)
				}
				// It may answer, but in the end the stream is over.
				for {
					if _, err := s.next(); err != nil {
						if errors.Is(err, os.ErrDeadlineExceeded) {
							t.Fatalf("%x: the stream does not end", b)
						}
						break
					}
				}
				s.abandon()
			}
			c.legacy().wantAlive()
		})
	}
	check()
	h.bystander.wantAlive()
}

// goldenFrames are all golden vectors, the malformed ones too.
func goldenFrames(t *testing.T) [][]byte {
	t.Helper()
	var frames [][]byte
	for _, pattern := range []string{"vectors/*.hex", "vectors/derived/*.hex"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var b []byte
			if _, err := fmt.Sscanf(strings.TrimSpace(string(text)), "%x", &b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(b) > 0 {
				frames = append(frames, b)
			}
		}
	}
	if len(frames) < 40 {
		t.Fatalf("%d golden vectors", len(frames))
	}
	return frames
}
