package wire

import "slices"

// A Decoder reads the JSON messages of one stream. It gives what [ParseMessage]
// gives, and decodes the frequent types without allocating: cache_get,
// cache_put, cache_delete, cache_put_if, cache_delete_if, cache_value, cache_ok,
// cache_condition_result, publish_ok, group_ack, group_ack_batch and
// group_records. A message of these types, its key, value, offsets and records
// belong to the Decoder and are valid until the next Decode; its names
// are interned strings and may be kept. Other messages own their memory.
//
// The zero value is ready. One goroutine uses it.
type Decoder struct {
	s       scanner
	f       fields
	nested  fields
	names   interner
	scratch []byte // keys and values of the current message

	own ownMessages
}

// ownMessages has one message of each frequent type.
type ownMessages struct {
	cacheGet             CacheGet
	cachePut             CachePut
	cacheDelete          CacheDelete
	cachePutIf           CachePutIf
	cacheDeleteIf        CacheDeleteIf
	cacheValue           CacheValue
	cacheOK              CacheOK
	cacheConditionResult CacheConditionResult
	publishOK            PublishOK
	groupAck             GroupAck
	groupAckBatch        GroupAckBatch
	groupRecords         GroupRecords
}

// maxKeptScratch bounds, in bytes, what a Decoder keeps between messages in each
// of its two scratch buffers.
const maxKeptScratch = 256 << 10

// Decode reads the payload of a JSON frame. See [ParseMessage] for the errors.
func (d *Decoder) Decode(payload []byte) (Message, error) {
	d.scratch, d.names.turn = d.scratch[:0], 0
	d.s.data, d.s.pos = payload, 0
	m, err := parseMessage(&d.s, d)
	d.s.data, d.f.name, d.nested.name = nil, nil, nil // the payload is the caller's
	if cap(d.s.scratch) > maxKeptScratch {
		d.s.scratch = nil
	}
	return m, err
}

// Release lets go of the last message, as the next Decode would. It is for a
// stream that may be idle for long after a large value.
func (d *Decoder) Release() { d.own = ownMessages{} }

// owned is the Decoder's own message of a frequent type, cleared; nil for
// another type or without a Decoder.
func (d *Decoder) owned(typ string) Message {
	if d == nil {
		return nil
	}
	switch typ {
	case "cache_get":
		d.own.cacheGet = CacheGet{}
		return &d.own.cacheGet
	case "cache_put":
		d.own.cachePut = CachePut{}
		return &d.own.cachePut
	case "cache_delete":
		d.own.cacheDelete = CacheDelete{}
		return &d.own.cacheDelete
	case "cache_put_if":
		d.own.cachePutIf = CachePutIf{}
		return &d.own.cachePutIf
	case "cache_delete_if":
		d.own.cacheDeleteIf = CacheDeleteIf{}
		return &d.own.cacheDeleteIf
	case "cache_value":
		d.own.cacheValue = CacheValue{}
		return &d.own.cacheValue
	case "cache_ok":
		d.own.cacheOK = CacheOK{}
		return &d.own.cacheOK
	case "cache_condition_result":
		d.own.cacheConditionResult = CacheConditionResult{}
		return &d.own.cacheConditionResult
	case "publish_ok":
		d.own.publishOK = PublishOK{}
		return &d.own.publishOK
	case "group_ack":
		d.own.groupAck = GroupAck{}
		return &d.own.groupAck
	case "group_ack_batch":
		offsets := d.own.groupAckBatch.Offsets[:0]
		if cap(offsets) > 2*MaxAckBatch {
			offsets = nil
		}
		d.own.groupAckBatch = GroupAckBatch{Offsets: offsets}
		return &d.own.groupAckBatch
	case "group_records":
		records := d.own.groupRecords.Records
		clear(records)
		if cap(records) > 2*MaxPollRecords {
			records = nil
		}
		d.own.groupRecords = GroupRecords{Records: records[:0]}
		return &d.own.groupRecords
	}
	return nil
}

// fields is where a message is read from: the Decoder's own, if there is one.
func (d *Decoder) fields() *fields {
	if d == nil {
		return new(fields)
	}
	return &d.f
}

// nestedFields is likewise for an object inside a message: the frequent types
// nest one level.
func (d *Decoder) nestedFields() *fields {
	if d == nil {
		return new(fields)
	}
	return &d.nested
}

// room is an empty slice, never nil, with room for n bytes that lives until the
// next message. What would make the scratch large is left to the garbage
// collector.
func (d *Decoder) room(n int) []byte {
	from := len(d.scratch)
	if from+n > maxKeptScratch {
		return make([]byte, 0, n)
	}
	d.scratch = slices.Grow(d.scratch, n+1)[:from+n] // one more: never nil
	return d.scratch[from : from : from+n]
}

// An interner gives equal names the same string, so that a stream that names
// the same caches again and again allocates nothing for them.
type interner struct {
	last  [4]string // the names of the last message, in their order
	turn  int       // of the next name; back at 0 with each message
	names map[string]string
}

// maxInterned bounds the names an interner holds; it starts anew when full.
const maxInterned = 256

func (n *interner) intern(b []byte) string {
	last := &n.last[n.turn%len(n.last)]
	n.turn++
	if *last == string(b) {
		return *last
	}
	if len(b) > MaxName {
		return string(b) // no valid name: not worth keeping
	}
	s, ok := n.names[string(b)]
	if !ok {
		if len(n.names) >= maxInterned {
			clear(n.names)
		}
		if n.names == nil {
			n.names = make(map[string]string)
		}
		s = string(b)
		n.names[s] = s
	}
	*last = s
	return s
}
