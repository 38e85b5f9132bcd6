package raw

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
)

func decodeNumbers(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

// A Publish is a binary publish batch (wire 4.1 to 4.3). Flags chooses which
// of the optional fields are written.
type Publish struct {
	Flags                     uint16
	RequestID                 uint64
	AckMode                   uint8
	ProducerID, Sequence      uint64
	Key                       []byte
	Tenant, Namespace, Stream string
	Records                   [][]byte
}

// Frame encodes p.
func (p Publish) Frame() Frame {
	var b []byte
	if p.Flags&FlagPublishAcked != 0 {
		b = binary.BigEndian.AppendUint64(b, p.RequestID)
		b = append(b, p.AckMode)
	}
	if p.Flags&FlagPublishIdempotent != 0 {
		b = binary.BigEndian.AppendUint64(b, p.ProducerID)
		b = binary.BigEndian.AppendUint64(b, p.Sequence)
	}
	if p.Flags&FlagPublishKeyed != 0 {
		b = AppendString16(b, string(p.Key))
	}
	for _, name := range []string{p.Tenant, p.Namespace, p.Stream} {
		b = AppendString16(b, name)
	}
	return Frame{Flags: p.Flags, Payload: AppendRecords(b, p.Records...)}
}

// AppendString16 appends a length of two bytes and s (wire 0.3).
func AppendString16(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

// AppendRecords appends a record block: count, then each record behind its
// length (wire 4.1).
func AppendRecords(dst []byte, records ...[]byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(records)))
	for _, r := range records {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(r)))
		dst = append(dst, r...)
	}
	return dst
}

var errTruncated = errors.New("truncated")

// cursor walks a binary payload; the first shortfall sticks.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.b) {
		c.err = errTruncated
		return nil
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

func (c *cursor) uint(n int) uint64 {
	var u uint64
	for _, b := range c.take(n) {
		u = u<<8 | uint64(b)
	}
	return u
}

func (c *cursor) bytes16() []byte { return c.take(int(c.uint(2))) }

func (c *cursor) records(timestamps bool) (records [][]byte, times []uint64) {
	for n := c.uint(4); n > 0 && c.err == nil; n-- {
		if timestamps {
			times = append(times, c.uint(8))
		}
		records = append(records, c.take(int(c.uint(4))))
	}
	return records, times
}

// ParsePublish decodes a binary publish batch.
func ParsePublish(f Frame) (Publish, error) {
	p := Publish{Flags: f.Flags}
	c := &cursor{b: f.Payload}
	if f.Flags&FlagPublishAcked != 0 {
		p.RequestID = c.uint(8)
		p.AckMode = uint8(c.uint(1))
	}
	if f.Flags&FlagPublishIdempotent != 0 {
		p.ProducerID, p.Sequence = c.uint(8), c.uint(8)
	}
	if f.Flags&FlagPublishKeyed != 0 {
		p.Key = c.bytes16()
	}
	p.Tenant, p.Namespace, p.Stream = string(c.bytes16()), string(c.bytes16()), string(c.bytes16())
	p.Records, _ = c.records(false)
	return p, c.err
}

// An Ack is a binary publish acknowledgement (wire 4.4). Flags chooses which
// of the optional fields are written.
type Ack struct {
	Flags        uint16
	Status       uint8
	RequestID    uint64
	Message      string
	Code         uint16
	Retry        uint8
	Reason       string
	RetryAfterMS uint64
	NodeID, Addr string
	Generation   uint64
	Offset       uint64
}

// Frame encodes a.
func (a Ack) Frame() Frame {
	b := append([]byte{a.Status}, binary.BigEndian.AppendUint64(nil, a.RequestID)...)
	b = AppendString16(b, a.Message)
	if a.Flags&FlagAckCode != 0 {
		b = binary.BigEndian.AppendUint16(b, a.Code)
		b = append(b, a.Retry)
	}
	if a.Flags&FlagAckDetail != 0 {
		b = AppendString16(b, a.Reason)
		b = binary.BigEndian.AppendUint64(b, a.RetryAfterMS)
	}
	if a.Flags&FlagAckOwner != 0 {
		b = AppendString16(b, a.NodeID)
		b = AppendString16(b, a.Addr)
		b = binary.BigEndian.AppendUint64(b, a.Generation)
	}
	if a.Flags&FlagAckOffset != 0 {
		b = binary.BigEndian.AppendUint64(b, a.Offset)
	}
	return Frame{Flags: a.Flags | FlagPublishAck, Payload: b}
}

// ParseAck decodes a binary publish acknowledgement.
func ParseAck(f Frame) (Ack, error) {
	a := Ack{Flags: f.Flags}
	c := &cursor{b: f.Payload}
	a.Status, a.RequestID, a.Message = uint8(c.uint(1)), c.uint(8), string(c.bytes16())
	if f.Flags&FlagAckCode != 0 {
		a.Code, a.Retry = uint16(c.uint(2)), uint8(c.uint(1))
	}
	if f.Flags&FlagAckDetail != 0 {
		a.Reason, a.RetryAfterMS = string(c.bytes16()), c.uint(8)
	}
	if f.Flags&FlagAckOwner != 0 {
		a.NodeID, a.Addr, a.Generation = string(c.bytes16()), string(c.bytes16()), c.uint(8)
	}
	if f.Flags&FlagAckOffset != 0 {
		a.Offset = c.uint(8)
	}
	if c.err == nil && len(c.b) != 0 {
		c.err = errors.New("bytes after the last field")
	}
	return a, c.err
}

// An Events is a binary event batch (wire 4.5). Flags chooses which of the
// optional fields are written.
type Events struct {
	Flags          uint16
	SubscriptionID uint64
	BaseOffset     uint64
	Skipped        uint64
	Publisher      string
	Records        [][]byte
	Timestamps     []uint64
}

// Frame encodes e.
func (e Events) Frame() Frame {
	var b []byte
	if e.Flags&FlagEventBatch != 0 {
		b = binary.BigEndian.AppendUint64(b, e.SubscriptionID)
	}
	if e.Flags&FlagEventOffsets != 0 {
		b = binary.BigEndian.AppendUint64(b, e.BaseOffset)
	}
	if e.Flags&FlagEventSkipped != 0 {
		b = binary.BigEndian.AppendUint64(b, e.Skipped)
	}
	if e.Flags&FlagEventPublisher != 0 {
		b = append(b, byte(len(e.Publisher)))
		b = append(b, e.Publisher...)
	}
	if e.Flags&FlagEventTimestamps == 0 {
		return Frame{Flags: e.Flags, Payload: AppendRecords(b, e.Records...)}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Records)))
	for i, r := range e.Records {
		b = binary.BigEndian.AppendUint64(b, e.Timestamps[i])
		b = binary.BigEndian.AppendUint32(b, uint32(len(r)))
		b = append(b, r...)
	}
	return Frame{Flags: e.Flags, Payload: b}
}

// ParseEvents decodes a binary event batch.
func ParseEvents(f Frame) (Events, error) {
	e := Events{Flags: f.Flags}
	c := &cursor{b: f.Payload}
	if f.Flags&FlagEventBatch != 0 {
		e.SubscriptionID = c.uint(8)
	}
	if f.Flags&FlagEventOffsets != 0 {
		e.BaseOffset = c.uint(8)
	}
	if f.Flags&FlagEventSkipped != 0 {
		e.Skipped = c.uint(8)
	}
	if f.Flags&FlagEventPublisher != 0 {
		e.Publisher = string(c.take(int(c.uint(1))))
	}
	e.Records, e.Timestamps = c.records(f.Flags&FlagEventTimestamps != 0)
	if c.err == nil && len(c.b) != 0 {
		c.err = errors.New("bytes after the last record")
	}
	return e, c.err
}
