// Package frames builds the frames that Felix puts on the wire for the work
// of a benchmark, so that a reference can send the same bytes.
package frames

import (
	"github.com/felixlog/felix/wire"
)

// The names that every benchmark uses, those of felix dev.
const (
	Tenant    = "dev"
	Namespace = "default"
	Stream    = "bench"
	Cache     = "bench"
)

const (
	// requestID is a request number of ordinary length on a stream of a
	// benchmark: six digits where numbers are text.
	requestID = 123456
	// version is a cache version of ordinary length: versions of a cache in
	// memory count up from the microseconds of the clock.
	version = 1_800_000_000_000_000
)

// A Sizes is the length of a request frame and of the frame that answers it.
type Sizes struct {
	Request, Reply int
}

func block(records, size int) wire.Block {
	payloads := make([][]byte, records)
	for i := range payloads {
		payloads[i] = make([]byte, size)
	}
	return wire.AppendBlock(nil, payloads...)
}

func publish(records, size int, mode wire.AckMode) []byte {
	p := wire.Publish{
		Acked: true, RequestID: requestID, AckMode: mode,
		Tenant: []byte(Tenant), Namespace: []byte(Namespace), Stream: []byte(Stream),
		Block: block(records, size),
	}
	return p.Append(nil)
}

// PublishBatch is the frame of an acknowledged batch.
func PublishBatch(records, size int) []byte { return publish(records, size, wire.AckPerBatch) }

// EventBatch is the frame in which a subscriber receives a batch.
func EventBatch(records, size int) []byte {
	b := block(records, size)
	head := wire.AppendEventHead(nil, wire.FlagEventBatchShared|wire.FlagEventOffsets, 0, requestID, 0, nil, len(b))
	return append(head, b...)
}

// LonePublish is the publish of one record and its acknowledgement.
func LonePublish(size int) Sizes {
	ack := wire.Ack{RequestID: requestID}
	return Sizes{Request: len(publish(1, size, wire.AckPerMessage)), Reply: len(ack.Append(nil))}
}

// CacheGet is a cache hit.
func CacheGet(key string, size int) Sizes {
	id := wire.Some[uint64](requestID)
	return Sizes{
		Request: len(wire.AppendMessage(nil, &wire.CacheGet{
			Tenant: Tenant, Namespace: Namespace, Cache: Cache, Key: []byte(key), RequestID: id,
		})),
		Reply: len(wire.AppendMessage(nil, &wire.CacheValue{
			Tenant: Tenant, Namespace: Namespace, Cache: Cache, Key: []byte(key), RequestID: id,
			Value: wire.Some(make([]byte, size)), Version: wire.Some[uint64](version),
		})),
	}
}

// CachePut is a cache write.
func CachePut(key string, size int) Sizes {
	return Sizes{
		Request: len(wire.AppendMessage(nil, &wire.CachePut{
			Tenant: Tenant, Namespace: Namespace, Cache: Cache, Key: []byte(key), Value: make([]byte, size),
			RequestID: wire.Some[uint64](requestID),
		})),
		Reply: len(wire.AppendMessage(nil, &wire.CacheOK{RequestID: requestID})),
	}
}
