package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A lengthField is where a payload says how much follows.
type lengthField struct {
	name string
	at   int // offset in the payload
	size int // 1, 2 or 4 bytes
}

// lengthFields finds every inner length of a well-formed payload by the layouts
// of wire 4, without the decoders.
func lengthFields(f Flags, b []byte) []lengthField {
	var found []lengthField
	at := 0
	fixed := func(n int) { at += n }
	length := func(name string, size int) {
		found = append(found, lengthField{name, at, size})
		n := 0
		for _, c := range b[at : at+size] {
			n = n<<8 | int(c)
		}
		at += size + n
	}
	records := func(ahead int) {
		found = append(found, lengthField{"count", at, 4})
		count := binary.BigEndian.Uint32(b[at:])
		at += 4
		for range count {
			fixed(ahead)
			length("record", 4)
		}
	}
	switch {
	case f&FlagPublishBatch != 0:
		if f&FlagPublishAcked != 0 {
			fixed(9)
		}
		if f&FlagPublishIdempotent != 0 {
			fixed(16)
		}
		if f&FlagPublishKeyed != 0 {
			length("key", 2)
		}
		length("tenant", 2)
		length("namespace", 2)
		length("stream", 2)
		records(0)
	case f&FlagPublishAck != 0:
		fixed(9)
		length("message", 2)
		if f&FlagAckCode != 0 {
			fixed(3)
		}
		if f&FlagAckDetail != 0 {
			length("reason", 2)
			fixed(8)
		}
		if f&FlagAckOwner != 0 {
			length("node_id", 2)
			length("addr", 2)
		}
	case f&(FlagEventBatch|FlagEventBatchShared) != 0:
		if f&FlagEventBatch != 0 {
			fixed(8)
		}
		if f&FlagEventOffsets != 0 {
			fixed(8)
		}
		if f&FlagEventSkipped != 0 {
			fixed(8)
		}
		if f&FlagEventPublisher != 0 {
			length("publisher", 1)
		}
		if f&FlagEventTimestamps != 0 {
			records(8)
		} else {
			records(0)
		}
	}
	return found
}

// TestInnerLengths makes every inner length of every vector larger than what is
// left. None may be believed.
func TestInnerLengths(t *testing.T) {
	tried := map[string]int{}
	for _, v := range allVectors(t) {
		if v.Expect == "error" {
			continue
		}
		f, payload := cut(t, v.frame)
		for _, field := range lengthFields(f, payload) {
			remaining := uint64(len(payload) - field.at - field.size)
			for _, value := range []uint64{remaining + 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF} {
				value &= 1<<(8*field.size) - 1
				if value <= remaining {
					continue // a cut-off value that is no lie
				}
				changed := bytes.Clone(payload)
				var whole [8]byte
				binary.BigEndian.PutUint64(whole[:], value)
				copy(changed[field.at:], whole[8-field.size:])
				frame := append(AppendHeader(nil, f, len(changed)), changed...)
				_, _, err := decodeFrame(frame)
				var fieldErr *FieldError
				if !errors.As(err, &fieldErr) || !errors.Is(err, ErrMalformed) {
					t.Errorf("%s: %s = %#x with %d bytes left: %v", v.Name, field.name, value, remaining, err)
				}
				tried[field.name]++
			}
		}
	}
	for _, name := range []string{"key", "tenant", "namespace", "stream", "count", "record", "message", "reason", "node_id", "addr", "publisher"} {
		if tried[name] == 0 {
			t.Errorf("no %s length was tried", name)
		}
	}
}

// allocated is the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestDeclaredCounts: a count or length that the bytes cannot hold reserves nothing.
func TestDeclaredCounts(t *testing.T) {
	body := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	names := body(u16(1), []byte("t"), u16(1), []byte("n"), u16(1), []byte("s"))
	var cases []func() error
	for _, count := range []uint32{1<<31 - 1, 1<<32 - 1, 6} {
		block := body(u32(count), make([]byte, 20))
		cases = append(cases,
			func() error { _, _, err := ParseBlock(block); return err },
			func() error { return ParsePublish(FlagPublishBatch, body(names, block), new(Publish)) },
			func() error { return ParseEventBatch(FlagEventBatchShared, block, new(EventBatch)) },
			func() error { return ParseEventBatch(FlagEventBatchShared|FlagEventTimestamps, block, new(EventBatch)) },
		)
	}
	cases = append(cases, func() error {
		_, _, err := NewFrameReader(bytes.NewReader(AppendHeader(nil, 0, 0xFFFFFFFF)), MaxFramePayload).Next()
		return err
	}, func() error {
		_, _, err := NewFrameReader(bytes.NewReader(AppendHeader(nil, 0, MaxFramePayload)), MaxFramePayload).Next()
		return err
	})
	for i, f := range cases {
		var err error
		if n := allocated(func() { err = f() }); n > 64<<10 {
			t.Errorf("case %d allocated %d bytes", i, n)
		}
		if err == nil {
			t.Errorf("case %d was accepted", i)
		}
	}
}

// TestNesting: ignored and raw values nest at most MaxNesting deep, and deeper
// ones cost nothing.
func TestNesting(t *testing.T) {
	array := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	object := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth) }
	mixed := func(depth int) string {
		return strings.Repeat(`[{"a":`, depth/2) + "0" + strings.Repeat("}]", depth/2)
	}
	shapes := []string{
		`{"type":"cache_ok","ignored":%s,"request_id":1}`,
		`{"ignored":%s,"type":"cache_ok","request_id":1}`,
		`{"type":"extension","name":"n","body":%s}`,
		`{"type":"not known","ignored":%s}`,
		`{"type":"error","message":"m","detail":{"ignored":%s}}`,
		`{"type":"topology_view","brokers":[{"node_id":"n","addr":"a","ignored":%s}]}`,
	}
	for _, shape := range shapes {
		for _, nest := range []func(int) string{array, object, mixed} {
			for depth, ok := range map[int]bool{2: true, MaxNesting: true, MaxNesting + 2: false, 100_000: false} {
				payload := fmt.Appendf(nil, shape, nest(depth))
				_, err := ParseMessage(payload)
				if (err == nil) != ok {
					t.Errorf("%s, %d deep: %v", shape, depth, err)
				}
			}
		}
	}
	if _, err := ParseMessage(fmt.Appendf(nil, shapes[0], array(MaxNesting+1))); err == nil {
		t.Error("one level too many was accepted")
	}
	for _, opening := range []string{"[", `{"a":`, `{"type":`, `[{"a":`} {
		hostile := []byte(strings.Repeat(opening, MaxFramePayload/len(opening)))
		for _, payload := range [][]byte{hostile, append([]byte(`{"x":`), hostile...), append([]byte(`{"type":"extension","body":`), hostile...)} {
			var err error
			if n := allocated(func() { _, err = ParseMessage(payload) }); n > 64<<10 {
				t.Errorf("16 MiB of %s allocated %d bytes", opening, n)
			}
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("16 MiB of %s: %v", opening, err)
			}
			if json.Valid(payload) {
				t.Error("the payload is valid after all")
			}
		}
	}
}

// TestErrorTexts: what a peer sent cannot make an error text long or unreadable.
func TestErrorTexts(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for _, payload := range []string{
		`{"type":"` + huge + `","a":tru}`,
		`{"type":"ok","` + huge + `":tru}`,
		`{"type":"ok","` + strings.Repeat("é", 500) + `":tru}`,
	} {
		_, err := ParseMessage([]byte(payload))
		if err == nil || len(err.Error()) > 400 {
			t.Errorf("%.30s...: %.500v", payload, err)
		}
	}
}
