package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
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
	if s.receive != nil {
		s.receive.CancelRead(0)
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
