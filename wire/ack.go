package wire

import "encoding/binary"

// An Ack is the binary answer to an acked publish (wire 4.4):
//
//	u8 status, u64 request_id, str16 message
//	u16 code, u8 retry                           when HasCode; failures only
//	str16 reason, u64 retry_after_ms             when HasDetail; needs HasCode
//	str16 node_id, str16 addr, u64 generation    when HasOwner
//	u64 offset                                   when HasOffset; successes only
//
// Idempotent batches are never answered with it.
type Ack struct {
	RequestID uint64
	Failed    bool
	// Message is prose for a failure, empty on success. Append cuts it to
	// MaxAckMessage bytes.
	Message string

	HasCode bool
	Code    Code
	Retry   RetryClass // as sent, known or not

	HasDetail bool
	Detail    Detail

	// HasOwner says that the broker forwarded the batch to this owner, which
	// is a hint for the next one.
	HasOwner        bool
	OwnerNode       string
	OwnerAddr       string // host:port; empty when it is not published
	OwnerGeneration uint64

	HasOffset bool
	Offset    uint64 // of the batch's first record
}

const ackName = "publish ack"

// ParseAck reads an ack into a. Reused with the same a it allocates only for
// texts that differ from those of the last ack. Bytes after the last field are
// ignored. An error is [ErrFlags] or [ErrMalformed], and leaves a unspecified.
func ParseAck(f Flags, payload []byte, a *Ack) error {
	if f.Kind() != FrameAck {
		return &FieldError{Message: ackName, Field: "flags", Problem: "illegal combination", kind: ErrFlags}
	}
	a.HasCode = f.Has(FlagAckCode)
	a.HasDetail = f.Has(FlagAckDetail)
	a.HasOwner = f.Has(FlagAckOwner)
	a.HasOffset = f.Has(FlagAckOffset)

	c := cursor{rest: payload}
	status := c.u8("status")
	if status > 1 {
		c.fail("status", "neither 0 nor 1")
	}
	a.Failed = status == 1
	if a.Failed && a.HasOffset {
		c.fail("offset", "on a failed ack")
	}
	if !a.Failed && a.HasCode {
		c.fail("code", "on a successful ack")
	}
	a.RequestID = c.u64("request_id")
	setText(&a.Message, c.text16("message"))

	a.Code, a.Retry = 0, 0
	if a.HasCode {
		a.Code = Code(c.u16("code"))
		a.Retry = RetryClass(c.u8("retry"))
	}
	var reason, node, addr []byte
	a.Detail.RetryAfterMS, a.OwnerGeneration, a.Offset = 0, 0, 0
	if a.HasDetail {
		reason = c.text16("reason")
		a.Detail.RetryAfterMS = c.u64("retry_after_ms")
	}
	if a.HasOwner {
		node = c.text16("node_id")
		addr = c.text16("addr")
		a.OwnerGeneration = c.u64("generation")
	}
	if a.HasOffset {
		a.Offset = c.u64("offset")
	}
	setText(&a.Detail.Reason, reason)
	setText(&a.OwnerNode, node)
	setText(&a.OwnerAddr, addr)
	return c.err(ackName, ErrMalformed)
}

// Flags is the frame flags that the fields call for. Groups that may not be on
// such an ack are left out.
func (a *Ack) Flags() Flags {
	f := FlagPublishAck
	if a.Failed && a.HasCode {
		f |= FlagAckCode
		if a.HasDetail {
			f |= FlagAckDetail
		}
	}
	if a.HasOwner {
		f |= FlagAckOwner
	}
	if !a.Failed && a.HasOffset {
		f |= FlagAckOffset
	}
	return f
}

// Append appends the whole frame.
func (a *Ack) Append(dst []byte) []byte {
	f := a.Flags()
	start := len(dst)
	dst = AppendHeader(dst, f, 0)
	status := byte(0)
	if a.Failed {
		status = 1
	}
	dst = append(dst, status)
	dst = binary.BigEndian.AppendUint64(dst, a.RequestID)
	dst = appendText16(dst, cutText(a.Message, MaxAckMessage))
	if f.Has(FlagAckCode) {
		dst = binary.BigEndian.AppendUint16(dst, uint16(a.Code))
		dst = append(dst, byte(a.Retry))
	}
	if f.Has(FlagAckDetail) {
		dst = appendText16(dst, a.Detail.Reason)
		dst = binary.BigEndian.AppendUint64(dst, a.Detail.RetryAfterMS)
	}
	if f.Has(FlagAckOwner) {
		dst = appendText16(dst, a.OwnerNode)
		dst = appendText16(dst, a.OwnerAddr)
		dst = binary.BigEndian.AppendUint64(dst, a.OwnerGeneration)
	}
	if f.Has(FlagAckOffset) {
		dst = binary.BigEndian.AppendUint64(dst, a.Offset)
	}
	return endFrame(dst, start)
}

// endFrame writes the length of the frame that starts at start and ends dst.
func endFrame(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start+HeaderSize-4:], uint32(len(dst)-start-HeaderSize))
	return dst
}
