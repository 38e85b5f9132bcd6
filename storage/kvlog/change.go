package kvlog

// Change is one applied change.
type Change struct {
	Op Op
	// Key and Value are valid only during Changed, or until the page they
	// came with is released. Value is nil unless Op is Put.
	Key, Value []byte
	// Offset is that of the record.
	Offset uint64
	// Version is that of the entry a Put wrote.
	Version         uint64
	ExpiresAtMillis int64
}

// Observer hears of every change in offset order, after it is readable and
// before its writer is answered; one call at a time. What compaction copies is
// no change. Changed must not block, and must not write to the same projection.
type Observer interface {
	Changed(Change)
}
