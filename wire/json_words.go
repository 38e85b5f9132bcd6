package wire

// A ShardKind says whether a name is a stream's or a cache's (wire 7.2).
type ShardKind uint8

// The kinds of names with shards.
const (
	KindStream ShardKind = 1
	KindCache  ShardKind = 2
)

func (k ShardKind) String() string {
	switch k {
	case KindStream:
		return "stream"
	case KindCache:
		return "cache"
	}
	return "invalid"
}

func shardKindByName(name string) (ShardKind, bool) {
	switch name {
	case "stream":
		return KindStream, true
	case "cache":
		return KindCache, true
	}
	return 0, false
}

// A CursorReason says why a start offset is refused (wire 7.4).
type CursorReason uint8

// The reasons.
const (
	CursorTooOld   CursorReason = 1 // below the oldest offset kept
	CursorInFuture CursorReason = 2 // above the tail
)

func (r CursorReason) String() string {
	switch r {
	case CursorTooOld:
		return "too_old"
	case CursorInFuture:
		return "in_future"
	}
	return "invalid"
}

func cursorReasonByName(name string) (CursorReason, bool) {
	switch name {
	case "too_old":
		return CursorTooOld, true
	case "in_future":
		return CursorInFuture, true
	}
	return 0, false
}
