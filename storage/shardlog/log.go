package shardlog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/segment"
)

// Log is one open log. Its methods are safe for concurrent use.
type Log struct {
	fs      fs.FS
	dir     string
	opts    Options
	began   time.Time // Options.Began
	metrics *Metrics
	waiters sync.Pool // of *waiter

	tail    atomic.Uint64 // committed: readers stop here
	durable atomic.Uint64 // on the device
	base    atomic.Uint64
	// cuts counts what changes bytes under the readers, truncations and resets,
	// before and after: a reader that sees two values reads again.
	cuts atomic.Uint64

	admin   sync.Mutex // see the package comment for the order of the locks
	flush   sync.Mutex
	io      sync.Mutex
	active  *seg
	written position   // what the files hold
	nextID  uint64     // of the next segment
	side    sync.Mutex // generations, replica and ballot on disk

	mu            sync.Mutex
	gather        *round // nil when nothing has gathered
	claimed       uint64
	claimedCRC    uint32
	claimedMicros uint64
	pending       int64 // bytes claimed and neither committed nor failed
	producers     *producer.Table
	committing    bool // the committer runs
	frozen        bool // a cut is under way
	closed        bool
	failure       *SyncFailedError
	room          chan struct{} // those who wait for room, nil for none
	retired       *seg          // rolled in the background, not yet sealed
	flushTimer    timer
	sweepTimer    timer
	commitTimer   timer
	retention     Retention
	replication   replication

	list     sync.RWMutex
	segments []*seg // oldest first, the last one active; replaced, not changed

	mark durableMark
	roll backgroundRoll
	// member is the log's use of the commit journal, nil for none.
	member *journal.Member
	// follow syncs the segment behind the journal; one at a time.
	follow    sync.WaitGroup
	following atomic.Bool
	// finished says that the log was closed with all of it on the device.
	finished atomic.Bool

	commitFn func() // l.commit, made once: a go statement must not allocate
}

// position is an end of the log.
type position struct {
	offset uint64
	crc    uint32 // of the batch before
}

// Earliest is the least record time that the next batch may have, in Unix
// microseconds: record times never decrease. 0 where there was no batch yet.
func (l *Log) Earliest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimedMicros
}

// Base is the oldest offset kept.
func (l *Log) Base() uint64 { return l.base.Load() }

// Tail is the offset after the newest committed record: readers stop there. It
// only falls when the log is cut, or when a log that is not in on_commit mode is
// poisoned: it then is Durable.
func (l *Log) Tail() uint64 { return l.tail.Load() }

// Durable is the offset below which everything is on the device.
func (l *Log) Durable() uint64 { return l.durable.Load() }

// Claimed is the offset the next append gets. It falls back when a write fails.
func (l *Log) Claimed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimed
}

// Dir is the directory of the log.
func (l *Log) Dir() string { return l.dir }

// Name is the label of the log in errors.
func (l *Log) Name() string { return l.opts.Name }

// replication is what a copy of a replicated log keeps (storage 13).
type replication struct {
	generations segment.Generations
	replica     segment.Replica
	ballot      segment.Ballot
	saved       uint64 // the commit offset in the file
}
