package kvlog

// Limits of a key and of a whole entry, in bytes.
const (
	MaxKeyBytes = 65_535
	// MaxEntryBytes bounds key and value together, so that a record fits a
	// batch of the log.
	MaxEntryBytes = 64 << 20
)

// Op is what a record or a change does to its key (storage 16.2).
type Op uint8

const (
	Put     Op = 0
	Deleted Op = 1
	// Expired is the removal of a lapsed entry, told apart from a delete.
	Expired Op = 2
	// Delete is Deleted, as a Write reads better.
	Delete = Deleted
)

// Item is what a key holds.
type Item struct {
	Value []byte
	// Version is the offset of the put that wrote the value; compaction keeps it.
	Version uint64
	// ExpiresAtMillis is in Unix milliseconds, 0 for never.
	ExpiresAtMillis int64
}

// Condition is what must hold for a write. The zero Condition always holds.
type Condition struct {
	kind    conditionKind
	version uint64
}

type conditionKind uint8

const (
	always conditionKind = iota
	absent
	atVersion
)

// Always holds.
func Always() Condition { return Condition{} }

// Absent holds when the key has no live entry.
func Absent() Condition { return Condition{kind: absent} }

// AtVersion holds when the key's live entry has this version.
func AtVersion(v uint64) Condition { return Condition{kind: atVersion, version: v} }

// Write is one put or delete.
type Write struct {
	Op         Op // Put or Delete
	Key, Value []byte
	// ExpiresAtMillis is the deadline of a put in Unix milliseconds, 0 for
	// none. Each put sets its own.
	ExpiresAtMillis int64
	Condition       Condition
}

// Result is the answer to a write. A condition that does not hold is an
// answer, not an error.
type Result struct {
	// Applied: the write took effect. False for a delete that found no live
	// entry.
	Applied bool
	// Version is that of the live entry afterwards: the new one of an applied
	// put, the current one of a refusal. HasVersion is false when there is no
	// live entry, as after an applied delete.
	Version    uint64
	HasVersion bool
	// Removed is what a delete removed, the receiver's to keep.
	Removed    Item
	HasRemoved bool
	// Offset is that of the record written; only when Applied.
	Offset uint64
}

// Done hears of a write's end, once.
//
// A nil error means committed as the log promises. A *shardlog.SyncFailedError
// with Unknown set means that the outcome is not known; after any other error
// the write did not happen and never will.
//
// Written runs on the goroutine that called Write or on the log's committer: it
// must not block. It may write.
type Done interface {
	Written(Result, error)
}
