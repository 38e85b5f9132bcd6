// Package wire is the protocol between Felix clients and brokers: frames,
// binary layouts, JSON messages, negotiation, error codes, names and the hash
// that takes a key to its shard. It does no I/O except through the io.Reader
// a [FrameReader] is given, and imports nothing else of Felix.
//
// # Frames (wire 3)
//
// A stream is frames back to back. A frame is a 12-byte header and a payload;
// all integers are big-endian:
//
//	offset  size  field
//	0       4     magic    0x464C5831, "FLX1"
//	4       2     version  1
//	6       2     flags    what the payload is
//	8       4     length   payload bytes that follow
//
// Flags 0 is one JSON object (wire 6, 7). Other flags are one base bit plus
// the modifier bits that go with it (wire 3.3, 3.4); [Flags.Kind] knows every
// legal combination and refuses the others:
//
//	publish batch  0x0001  [u64 request_id, u8 ack_mode] [u64 producer_id, u64 sequence]
//	                       [bytes16 key] str16 tenant, str16 namespace, str16 stream, block
//	publish ack    0x0010  u8 status, u64 request_id, str16 message [u16 code, u8 retry]
//	                       [str16 reason, u64 retry_after_ms]
//	                       [str16 node_id, str16 addr, u64 generation] [u64 offset]
//	event batch    0x0002  u64 subscription_id, then as shared
//	  shared       0x0004  [u64 base_offset] [u64 skipped_before] [u8 len, publisher] block
//
// A block is `u32 count, count x {u32 length, bytes}` and keeps its bytes from
// publisher to subscriber: see [Block]. In an event batch with timestamps every
// record is preceded by a u64, and the records are no [Block].
//
// # Decoding
//
// Every length is checked against the bytes that are left and every count
// against what they can hold before anything is allocated (wire 4.6). Binary
// decoders return views of the payload. [ParseMessage] returns messages that
// own their memory; a [Decoder] reads the frequent ones without allocating.
// A decoding error satisfies errors.Is(err, [ErrMalformed]).
//
// # JSON presence (wire 0.3)
//
// A field that may be left out is an [Optional]; null counts as absent. Byte
// fields are padded base64. Cache, counter and state keys are JSON strings held
// as []byte. Integers are exact; fractions and exponents are refused. A known
// member given twice is refused, an unknown member is skipped, and skipped
// values nest at most [MaxNesting] deep. Strings must be valid UTF-8 without
// lone surrogates.
package wire
