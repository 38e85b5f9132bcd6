package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// cut parses the frame's header and returns its parts.
func cut(t testing.TB, frame []byte) (Flags, []byte) {
	t.Helper()
	h, err := ParseHeader(frame)
	if err != nil || int(h.Length) != len(frame)-HeaderSize {
		t.Fatalf("header %+v of a frame of %d bytes: %v", h, len(frame), err)
	}
	return h.Flags, frame[HeaderSize:]
}

func TestBlock(t *testing.T) {
	table := [][]string{
		{}, {""}, {"a"}, {"", "", ""}, {"first", "", "last"}, {"", "middle", ""}, {strings.Repeat("x", 70000)},
	}
	for _, row := range table {
		var payloads [][]byte
		for _, p := range row {
			payloads = append(payloads, []byte(p))
		}
		b := AppendBlock([]byte("before"), payloads...)[len("before"):]
		if len(b) != BlockSize(payloads...) {
			t.Errorf("%d bytes, BlockSize says %d", len(b), BlockSize(payloads...))
		}
		block, rest, err := ParseBlock(append(bytes.Clone(b), "after"...))
		if err != nil || string(rest) != "after" || !bytes.Equal(block, b) {
			t.Fatalf("%q: %x, rest %q, %v", row, block, rest, err)
		}
		if block.Count() != len(row) || block.PayloadBytes() != len(strings.Join(row, "")) {
			t.Errorf("count %d, payload bytes %d", block.Count(), block.PayloadBytes())
		}
		for i, p := range block.All() {
			if string(p) != row[i] || cap(p) != len(p) {
				t.Errorf("record %d is %.20q with room for %d", i, p, cap(p))
			}
		}
	}
	var zero Block
	if zero.Count() != 0 || zero.PayloadBytes() != 0 || zero.Records() != nil {
		t.Error("the zero block is not empty")
	}
	for range zero.All() {
		t.Error("the zero block has records")
	}
	for range Block(AppendBlock(nil, nil, nil)).All() {
		break // an early end must not yield again
	}
}

func randomBytes(rnd *rand.Rand, limit int) []byte {
	b := make([]byte, rnd.IntN(limit+1))
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func randomText(rnd *rand.Rand, limit int) string {
	return strings.ToValidUTF8(string(randomBytes(rnd, limit)), "é")
}

func randomBlock(rnd *rand.Rand) Block {
	payloads := make([][]byte, rnd.IntN(5))
	for i := range payloads {
		payloads[i] = randomBytes(rnd, 30)
	}
	return AppendBlock(nil, payloads...)
}

// TestBinaryRoundTrip encodes random values of every legal combination and
// decodes them again.
func TestBinaryRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	prefix := []byte("earlier frame")
	encoded := func(appendTo func([]byte) []byte) (Flags, []byte) {
		frame := appendTo(bytes.Clone(prefix))
		if !bytes.HasPrefix(frame, prefix) {
			t.Fatal("what was in dst changed")
		}
		return cut(t, frame[len(prefix):])
	}
	for i := range 1 << 15 {
		f := Flags(i)
		switch f.Kind() {
		case FramePublish:
			for range 50 {
				p := Publish{
					Acked: f.Has(FlagPublishAcked), Keyed: f.Has(FlagPublishKeyed), Idempotent: f.Has(FlagPublishIdempotent),
					Tenant: []byte(randomText(rnd, 9)), Namespace: []byte(randomText(rnd, 9)), Stream: []byte(randomText(rnd, 9)),
					Block: randomBlock(rnd),
				}
				if p.Acked {
					p.RequestID, p.AckMode = rnd.Uint64(), AckPerBatch
					if !p.Idempotent && rnd.IntN(2) == 0 {
						p.AckMode = AckPerMessage
					}
				}
				if p.Idempotent {
					p.ProducerID, p.Sequence = rnd.Uint64(), rnd.Uint64()
				}
				if p.Keyed {
					p.Key = append([]byte{}, randomBytes(rnd, 3)...)
				}
				flags, payload := encoded(p.Append)
				var got Publish
				if err := ParsePublish(flags, payload, &got); err != nil || !reflect.DeepEqual(got, p) || flags != f {
					t.Fatalf("%#04x: %+v, %v\nwant %+v", uint16(flags), got, err, p)
				}
				if p.Size() != HeaderSize+len(payload) {
					t.Fatalf("size %d, want %d", p.Size(), HeaderSize+len(payload))
				}
			}
		case FrameAck:
			for _, failed := range []bool{false, true} {
				if failed && f.Has(FlagAckOffset) || !failed && f.Has(FlagAckCode) {
					continue
				}
				for range 50 {
					a := Ack{
						RequestID: rnd.Uint64(), Failed: failed,
						HasCode: f.Has(FlagAckCode), HasDetail: f.Has(FlagAckDetail), HasOwner: f.Has(FlagAckOwner), HasOffset: f.Has(FlagAckOffset),
					}
					if failed {
						a.Message = randomText(rnd, 20)
					}
					if a.HasCode {
						a.Code, a.Retry = Code(rnd.Uint32()), RetryClass(rnd.Uint32())
					}
					if a.HasDetail {
						a.Detail = Detail{Reason: randomText(rnd, 5), RetryAfterMS: rnd.Uint64()}
					}
					if a.HasOwner {
						a.OwnerNode, a.OwnerAddr, a.OwnerGeneration = randomText(rnd, 5), randomText(rnd, 5), rnd.Uint64()
					}
					if a.HasOffset {
						a.Offset = rnd.Uint64()
					}
					flags, payload := encoded(a.Append)
					got := Ack{Message: "old", Code: 1, Retry: 1, Detail: Detail{"old", 1}, OwnerNode: "old", OwnerAddr: "old", OwnerGeneration: 1, Offset: 1}
					if err := ParseAck(flags, payload, &got); err != nil || got != a || flags != f {
						t.Fatalf("%#04x: %+v, %v\nwant %+v", uint16(flags), got, err, a)
					}
				}
			}
		case FrameEvents:
			for range 50 {
				e := EventBatch{
					Shared: f.Has(FlagEventBatchShared), HasOffsets: f.Has(FlagEventOffsets), HasSkipped: f.Has(FlagEventSkipped),
					HasPublisher: f.Has(FlagEventPublisher), HasTimestamps: f.Has(FlagEventTimestamps),
				}
				if !e.Shared {
					e.SubscriptionID = rnd.Uint64()
				}
				if e.HasOffsets {
					e.BaseOffset = rnd.Uint64()
				}
				if e.HasSkipped {
					e.SkippedBefore = rnd.Uint64()
				}
				if e.HasPublisher {
					e.Publisher = []byte(randomText(rnd, 5))
				}
				block, micros := randomBlock(rnd), uint64(0)
				if e.HasTimestamps {
					micros = rnd.Uint64()
					e.Timed = AppendTimed(nil, block, micros)
					if len(e.Timed) != TimedSize(block) {
						t.Fatalf("%d bytes, TimedSize says %d", len(e.Timed), TimedSize(block))
					}
				} else {
					e.Block = block
				}
				flags, payload := encoded(e.Append)
				var got EventBatch
				if err := ParseEventBatch(flags, payload, &got); err != nil || !reflect.DeepEqual(got, e) || flags != f {
					t.Fatalf("%#04x: %+v, %v\nwant %+v", uint16(flags), got, err, e)
				}
				var want [][]byte
				for _, p := range block.All() {
					want = append(want, p)
				}
				n := 0
				for i, event := range got.All() {
					if i != n || !bytes.Equal(event.Payload, want[i]) || event.TimestampMicros != micros {
						t.Fatalf("event %d is %+v, want %q at %d", i, event, want[i], micros)
					}
					n++
				}
				if n != got.Count() || n != block.Count() {
					t.Fatalf("%d events of %d", n, block.Count())
				}
			}
		}
	}
}

// TestTrailingBytes: what follows the last field is ignored (wire 3.2 rule 6).
func TestTrailingBytes(t *testing.T) {
	for _, v := range allVectors(t) {
		if v.Expect == "error" {
			continue
		}
		f, payload := cut(t, v.frame)
		if f.Kind() == FrameJSON {
			continue
		}
		longer := append(bytes.Clone(payload), 0xFF)
		frame := append(AppendHeader(nil, f, len(longer)), longer...)
		if _, again, err := decodeFrame(frame); err != nil || !bytes.Equal(again, v.frame) {
			t.Errorf("%s: %x, %v", v.Name, again, err)
		}
	}
}

func TestPublishErrors(t *testing.T) {
	whole := Publish{
		Acked: true, Idempotent: true, Keyed: true, RequestID: 7, ProducerID: 8, Sequence: 9,
		Key: []byte("k"), Tenant: []byte("t"), Namespace: []byte("n"), Stream: []byte("s"), Block: AppendBlock(nil, []byte("x")),
	}
	for _, idempotent := range []bool{false, true} {
		p := whole
		p.Idempotent = idempotent
		f, payload := cut(t, p.Append(nil))
		for n := range payload {
			got := Publish{RequestID: 99}
			err := ParsePublish(f, payload[:n], &got)
			kind, other := ErrMalformedBody, ErrMalformedPrefix
			if n < 9 {
				kind, other = other, kind
			}
			if !errors.Is(err, kind) || errors.Is(err, other) || !errors.Is(err, ErrMalformed) || !got.Acked {
				t.Errorf("%d bytes: %v, acked %v", n, err, got.Acked)
			}
			if n >= 9 && got.RequestID != 7 {
				t.Errorf("%d bytes: request id %d", n, got.RequestID)
			}
			var field *FieldError
			if !errors.As(err, &field) || field.Field == "" || !strings.Contains(err.Error(), field.Field) {
				t.Errorf("%d bytes: %v names no field", n, err)
			}
		}
		for mode := range 256 {
			changed := bytes.Clone(payload)
			changed[8] = byte(mode)
			err := ParsePublish(f, changed, new(Publish))
			var want error
			switch {
			case mode != 1 && mode != 2:
				want = ErrMalformedPrefix
			case mode == 1 && idempotent:
				want = ErrMalformedBody
			}
			if !errors.Is(err, want) {
				t.Errorf("idempotent %v, ack mode %d: %v, want %v", idempotent, mode, err, want)
			}
		}
	}
	unacked := Publish{Tenant: []byte("t"), Namespace: []byte("n"), Stream: []byte("\xff")}
	f, payload := cut(t, unacked.Append(nil))
	var got Publish
	if err := ParsePublish(f, payload, &got); !errors.Is(err, ErrMalformedBody) || got.Acked || got.Block != nil {
		t.Errorf("unacked: %v, %+v", err, got)
	}
}

func TestAppendLimits(t *testing.T) {
	longest := bytes.Repeat([]byte("k"), MaxShortBytes)
	fits := Publish{Keyed: true, Key: longest, Tenant: longest, Namespace: longest, Stream: longest}
	f, payload := cut(t, fits.Append(nil))
	var got Publish
	if err := ParsePublish(f, payload, &got); err != nil || len(got.Key) != MaxShortBytes || len(got.Stream) != MaxShortBytes {
		t.Errorf("longest names: %v", err)
	}
	for _, p := range []Publish{
		{Keyed: true, Key: append(longest, 'k')}, {Tenant: append(longest, 'k')}, {Stream: append(longest, 'k')},
	} {
		if !panics(func() { p.Append(nil) }) {
			t.Error("a field of 65,536 bytes was written")
		}
	}
	ok := EventBatch{Shared: true, HasPublisher: true, Publisher: longest[:MaxPublisher]}
	if _, _, err := decodeFrame(ok.Append(nil)); err != nil {
		t.Errorf("longest publisher: %v", err)
	}
	notText := EventBatch{Shared: true, HasPublisher: true, Publisher: []byte("\xff")}
	if _, _, err := decodeFrame(notText.Append(nil)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a publisher that is not UTF-8: %v", err)
	}
	long := EventBatch{Shared: true, HasPublisher: true, Publisher: longest[:MaxPublisher+1]}
	if !panics(func() { long.Append(nil) }) {
		t.Error("a publisher of 256 bytes was written")
	}
	for _, f := range []Flags{0, 0x0001, 0x0006, 0x0804, 0x8004} {
		if !panics(func() { AppendEventHead(nil, f, 0, 0, 0, nil, 4) }) {
			t.Errorf("an event head with flags %#04x was written", uint16(f))
		}
	}
}

func TestAckTexts(t *testing.T) {
	for _, row := range []struct{ message, want string }{
		{strings.Repeat("m", 512), strings.Repeat("m", 512)},
		{strings.Repeat("m", 513), strings.Repeat("m", 512)},
		{strings.Repeat("m", 511) + "é", strings.Repeat("m", 511)},
		{strings.Repeat("m", 510) + "éé", strings.Repeat("m", 510) + "é"},
	} {
		f, payload := cut(t, (&Ack{Failed: true, Message: row.message}).Append(nil))
		var got Ack
		if err := ParseAck(f, payload, &got); err != nil || got.Message != row.want {
			t.Errorf("message of %d bytes came as %d bytes: %v", len(row.message), len(got.Message), err)
		}
	}
	huge := strings.Repeat("n", MaxShortBytes+10)
	f, payload := cut(t, (&Ack{HasOwner: true, OwnerNode: huge, OwnerAddr: "a:1"}).Append(nil))
	var got Ack
	if err := ParseAck(f, payload, &got); err != nil || len(got.OwnerNode) != MaxShortBytes || got.OwnerAddr != "a:1" {
		t.Errorf("owner of %d bytes: %v", len(got.OwnerNode), err)
	}
	// A code on a success, an offset on a failure, and a third status are malformed.
	for _, row := range []struct {
		f      Flags
		status byte
		rest   []byte
	}{
		{FlagPublishAck | FlagAckCode, 0, make([]byte, 3)},
		{FlagPublishAck | FlagAckOffset, 1, make([]byte, 8)},
		{FlagPublishAck, 2, nil},
	} {
		payload := slices.Concat([]byte{row.status}, make([]byte, 10), row.rest)
		if err := ParseAck(row.f, payload, new(Ack)); !errors.Is(err, ErrMalformed) || errors.Is(err, ErrFlags) {
			t.Errorf("%#04x, status %d: %v", uint16(row.f), row.status, err)
		}
	}
	// Groups that cannot be on such an ack are left out.
	if f := (&Ack{HasCode: true, HasDetail: true, HasOffset: true}).Flags(); f != FlagPublishAck|FlagAckOffset {
		t.Errorf("success with a code: %#04x", uint16(f))
	}
	if f := (&Ack{Failed: true, HasDetail: true, HasOffset: true}).Flags(); f != FlagPublishAck {
		t.Errorf("failure with detail and offset: %#04x", uint16(f))
	}
	if f := (&EventBatch{HasSkipped: true}).Flags(); f != FlagEventBatch {
		t.Errorf("skipped without offsets: %#04x", uint16(f))
	}
}

// TestAppendEventHead: a head and a stored block make the frame that Append makes.
func TestAppendEventHead(t *testing.T) {
	block := AppendBlock(nil, []byte("a"), []byte("bb"))
	for _, v := range loadVectors(t, vectorDir+"/derived") {
		if v.Expect == "error" {
			continue
		}
		f, payload := cut(t, v.frame)
		if f.Kind() != FrameEvents || f.Has(FlagEventTimestamps) {
			continue
		}
		var e EventBatch
		if err := ParseEventBatch(f, payload, &e); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(e.Block, block) {
			t.Fatalf("%s: block %x", v.Name, e.Block)
		}
		head := AppendEventHead(nil, f, e.SubscriptionID, e.BaseOffset, e.SkippedBefore, e.Publisher, len(block))
		if frame := slices.Concat(head, block); !bytes.Equal(frame, v.frame) {
			t.Errorf("%s: %x, want %x", v.Name, frame, v.frame)
		}
	}
}
