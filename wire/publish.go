package wire

import (
	"encoding/binary"
	"fmt"
)

// A Publish is a binary publish batch (wire 4.1 to 4.3):
//
//	u64 request_id, u8 ack_mode       when Acked
//	u64 producer_id, u64 sequence     when Idempotent, which implies Acked
//	bytes16 key                       when Keyed
//	str16 tenant, str16 namespace, str16 stream
//	block
type Publish struct {
	Acked      bool
	Keyed      bool // an empty Key is a key; without Keyed there is none
	Idempotent bool

	RequestID  uint64
	AckMode    AckMode // AckPerMessage or AckPerBatch when Acked
	ProducerID uint64
	Sequence   uint64

	// Views of the payload after ParsePublish.
	Key       []byte
	Tenant    []byte
	Namespace []byte
	Stream    []byte
	Block     Block
}

const publishName = "publish batch"

// ParsePublish reads a publish batch into p, whose byte fields become views of
// payload. Bytes after the last field are ignored (wire 3.2 rule 6).
//
// An error is one of three kinds (wire 19). [ErrFlags]: f is no publish; treat
// it as a malformed unacked batch. [ErrMalformedPrefix]: an acked batch that
// cannot be correlated. [ErrMalformedBody]: malformed otherwise; if p.Acked,
// p.RequestID and p.Idempotent are set and the request is owed a refusal.
func ParsePublish(f Flags, payload []byte, p *Publish) error {
	*p = Publish{}
	if f.Kind() != FramePublish {
		return &FieldError{Message: publishName, Field: "flags", Problem: "illegal combination", kind: ErrFlags}
	}
	p.Acked = f.Has(FlagPublishAcked)
	p.Keyed = f.Has(FlagPublishKeyed)
	p.Idempotent = f.Has(FlagPublishIdempotent)

	c := cursor{rest: payload}
	if p.Acked {
		p.RequestID = c.u64("request_id")
		p.AckMode = AckMode(c.u8("ack_mode"))
		if p.AckMode != AckPerMessage && p.AckMode != AckPerBatch {
			c.fail("ack_mode", "neither 1 nor 2")
		}
		if err := c.err(publishName, ErrMalformedPrefix); err != nil {
			return err
		}
	}
	if p.Idempotent {
		if p.AckMode != AckPerBatch {
			c.fail("ack_mode", "not 2 on an idempotent batch")
		}
		p.ProducerID = c.u64("producer_id")
		p.Sequence = c.u64("sequence")
	}
	if p.Keyed {
		p.Key = c.bytes16("key")
	}
	p.Tenant = c.text16("tenant_id")
	p.Namespace = c.text16("namespace")
	p.Stream = c.text16("stream")
	p.Block = c.block()
	return c.err(publishName, ErrMalformedBody)
}

// Flags is the frame flags that the fields call for.
func (p *Publish) Flags() Flags {
	f := FlagPublishBatch
	if p.Acked || p.Idempotent {
		f |= FlagPublishAcked
	}
	if p.Keyed {
		f |= FlagPublishKeyed
	}
	if p.Idempotent {
		f |= FlagPublishIdempotent
	}
	return f
}

// Append appends the whole frame. It panics when the key or a name is longer
// than [MaxShortBytes]: check them with [ValidateName] and [ValidateRoutingKey].
func (p *Publish) Append(dst []byte) []byte {
	return p.Block.append(p.AppendHead(dst, p.Block.size()))
}

// AppendHead appends the frame up to its block, of which blockLen bytes must
// follow; p.Block is not looked at. It lets a sender build the block in place.
// See [Publish.Append].
func (p *Publish) AppendHead(dst []byte, blockLen int) []byte {
	f := p.Flags()
	size := p.headSize(f)
	dst = AppendHeader(dst, f, size+blockLen)
	if f.Has(FlagPublishAcked) {
		mode := p.AckMode
		if p.Idempotent || mode == AckNone {
			mode = AckPerBatch // the only mode there, and the default for a batch
		}
		dst = binary.BigEndian.AppendUint64(dst, p.RequestID)
		dst = append(dst, byte(mode))
	}
	if p.Idempotent {
		dst = binary.BigEndian.AppendUint64(dst, p.ProducerID)
		dst = binary.BigEndian.AppendUint64(dst, p.Sequence)
	}
	if p.Keyed {
		dst = appendBytes16(dst, p.Key)
	}
	dst = appendBytes16(dst, p.Tenant)
	dst = appendBytes16(dst, p.Namespace)
	return appendBytes16(dst, p.Stream)
}

// Size is the length in bytes of the frame that Append makes.
func (p *Publish) Size() int {
	return HeaderSize + p.headSize(p.Flags()) + p.Block.size()
}

func (p *Publish) headSize(f Flags) int {
	size := 2 + len(p.Tenant) + 2 + len(p.Namespace) + 2 + len(p.Stream)
	if f.Has(FlagPublishAcked) {
		size += 8 + 1
	}
	if p.Idempotent {
		size += 8 + 8
	}
	if p.Keyed {
		size += 2 + len(p.Key)
	}
	return size
}

func appendBytes16(dst, b []byte) []byte {
	if len(b) > MaxShortBytes {
		panic(fmt.Sprintf("wire: field of %d bytes, at most %d", len(b), MaxShortBytes))
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(b)))
	return append(dst, b...)
}
