package cache

// WatchOptions ask for a watch of one shard (wire 11). The zero value watches
// every key of shard 0 from now on.
type WatchOptions struct {
	Shard uint32
	// Key watches this key; nil watches all keys that begin with Prefix, of
	// which an empty one is all keys. Not both.
	Key, Prefix []byte
	// From, if HasFrom, is the first change not yet seen. Changes from there
	// on are read from the log; if compaction has reclaimed them, the current
	// values come instead, and [Watch.Resnapshot] says so.
	From    uint64
	HasFrom bool
	// Retained asks for the current values first. Not with From.
	Retained bool
	// Capacity is the queue in changes: 0 means the configured default, more
	// than that is cut to it.
	Capacity int
}

// A ChangeOp is what happened to a key.
type ChangeOp uint8

const (
	// Updated: the key has a new value, or this is its current one at the
	// start of a watch.
	Updated ChangeOp = iota
	// Deleted: the key was deleted.
	Deleted
	// Expired: the entry's time was over.
	Expired
)

func (o ChangeOp) String() string {
	switch o {
	case Deleted:
		return "deleted"
	case Expired:
		return "expired"
	}
	return "updated"
}

// A Change is one change of one key. Key and Value are shared with other
// watches: they must not be modified.
type Change struct {
	Op    ChangeOp
	Key   []byte
	Value []byte // of an update, not nil then
	// Offset is that of the change in the shard's log. Those of one watch
	// rise, with gaps that mean nothing.
	Offset uint64
	// ExpiresAtMillis is the unix millisecond at which an update's entry
	// ends, 0 for never.
	ExpiresAtMillis int64
}
