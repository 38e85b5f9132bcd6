package shardlog

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/segment"
)

// FsyncMode says when appended batches reach the device (storage 8).
type FsyncMode uint8

const (
	// None leaves it to the operating system: a batch is answered from the
	// page cache. Power loss may lose everything since the last seal.
	None FsyncMode = iota
	// Periodic answers from the page cache and syncs every FsyncInterval.
	// Power loss may lose one interval.
	Periodic
	// OnCommit answers after the sync. Nothing answered is lost.
	OnCommit
)

// String is the name the configuration uses.
func (m FsyncMode) String() string {
	switch m {
	case None:
		return "none"
	case Periodic:
		return "periodic"
	case OnCommit:
		return "on_commit"
	}
	return fmt.Sprintf("fsync mode %d", uint8(m))
}

// ParseFsyncMode reads the name the configuration uses.
func ParseFsyncMode(s string) (FsyncMode, error) {
	for _, m := range []FsyncMode{None, Periodic, OnCommit} {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("fsync mode %q: want none, periodic or on_commit", s)
}

// Retention bounds what a log keeps (storage 14). The zero value keeps all.
type Retention struct {
	// MaxBytes bounds the bytes of all segments, the active one included; 0 is
	// no bound.
	MaxBytes int64
	// MaxAge bounds the age of a segment's newest record by its record time; 0
	// is no bound.
	MaxAge time.Duration
	// Interval is the time between two sweeps; 0 is 60 s.
	Interval time.Duration
}

func (r Retention) bounded() bool { return r.MaxBytes > 0 || r.MaxAge > 0 }

// Defaults of Options.
const (
	DefaultSegmentBytes    = 256 << 20
	DefaultIndexSpacing    = 4096
	DefaultMaxReadRecords  = 10_000
	DefaultMaxPendingBytes = 64 << 20
	DefaultSweepInterval   = 60 * time.Second
	DefaultMaxProducers    = 4096
	DefaultProducerWindow  = 64
)

// minSegmentBytes holds a header and one batch header (storage 3.3).
const minSegmentBytes = segment.HeaderSize + segment.BatchHeaderSize

// Options are the settings of one log. Zero means the default; Clock is
// required.
type Options struct {
	// Name is the label in errors and logs: tenant/namespace/stream/shard.
	Name string
	// SegmentBytes is the size past which a segment is sealed. A batch is never
	// split: one larger than this gets a segment of its own.
	SegmentBytes int64
	// IndexSpacing is the distance in bytes between two index entries.
	IndexSpacing int
	Fsync        FsyncMode
	// FsyncInterval is required with Periodic.
	FsyncInterval time.Duration
	// MaxReadRecords bounds the records of one Read, whatever the caller asks.
	MaxReadRecords int
	// Preallocate reserves a segment's blocks at its creation (storage 9.3).
	Preallocate bool
	// VerifyAll scans every segment at open, not the newest alone.
	VerifyAll bool
	// RepairChecksumTail lets recovery cut a complete but damaged last batch.
	RepairChecksumTail bool
	// RolloverThresholdPercent of SegmentBytes starts a roll in the background;
	// 0 and 100 are off (storage 9.2).
	RolloverThresholdPercent int
	// MaxOvershootPercent is how far past SegmentBytes a segment may grow while
	// such a roll runs; 0 is 100.
	MaxOvershootPercent int
	Retention           Retention
	// Projection marks a log that compacts: retention never applies to it.
	Projection bool
	// BaseOffset is the first offset of a log that does not exist yet.
	BaseOffset uint64
	// MaxPendingBytes bounds what is claimed and not yet committed; at the
	// bound Append answers ErrBusy.
	MaxPendingBytes int64
	// Producers keeps the state of idempotent producers (storage 15).
	Producers bool
	Clock     Clock
	// Gate bounds concurrent device flushes; nil is no bound.
	Gate *Gate
	// Journal, in on_commit mode, lets small rounds of several logs share a
	// sync; nil is a sync of its own for each. JournalName is the directory of
	// the log, relative to the root of the store the journal belongs to.
	Journal     *journal.Journal
	JournalName string
	// Began is a reading of the clock that the process took at its beginning.
	// Steps of the clock since then make no record older. Zero is when the log
	// is opened.
	Began time.Time
	// Descriptors bounds open sealed segments; nil is 256 for this log alone.
	Descriptors *Descriptors
	// Metrics are shared by the logs of a store; nil is a set of its own.
	Metrics *Metrics
	// Logger is nil for silence.
	Logger *slog.Logger
	// Admit is asked before every append; its error refuses it, and nothing is
	// kept. It must not wait. Nil admits all.
	Admit func() error
	// AfterRound is called on the committer's goroutine after the completions
	// of a round, so that a consumer can send in one go what they queued. It
	// must not wait for the log.
	AfterRound func()
	// OnClosed is called once, when [Log.Close] has let go of the last file.
	OnClosed func()
}

// Clock tells the time and calls back. AfterFunc calls f once, on a goroutine
// that f may block; stop reports whether it kept f from being called.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.IndexSpacing == 0 {
		o.IndexSpacing = DefaultIndexSpacing
	}
	if o.MaxReadRecords == 0 {
		o.MaxReadRecords = DefaultMaxReadRecords
	}
	if o.MaxPendingBytes == 0 {
		o.MaxPendingBytes = DefaultMaxPendingBytes
	}
	if o.RolloverThresholdPercent == 0 {
		o.RolloverThresholdPercent = 100
	}
	if o.MaxOvershootPercent == 0 {
		o.MaxOvershootPercent = 100
	}
	if o.Descriptors == nil {
		o.Descriptors = NewDescriptors(DefaultOpenSealed)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Clock == nil:
		return o, fmt.Errorf("log %s: options need a clock", o.Name)
	case o.SegmentBytes < minSegmentBytes:
		return o, fmt.Errorf("log %s: segment size %d: at least %d", o.Name, o.SegmentBytes, minSegmentBytes)
	case o.IndexSpacing < 0:
		return o, fmt.Errorf("log %s: index spacing %d: must be positive", o.Name, o.IndexSpacing)
	case o.MaxReadRecords < 0:
		return o, fmt.Errorf("log %s: records per read %d: must be positive", o.Name, o.MaxReadRecords)
	case o.MaxPendingBytes < 0:
		return o, fmt.Errorf("log %s: pending bytes %d: must be positive", o.Name, o.MaxPendingBytes)
	case o.Fsync > OnCommit:
		return o, fmt.Errorf("log %s: %s", o.Name, o.Fsync)
	case o.Fsync == Periodic && o.FsyncInterval <= 0:
		return o, fmt.Errorf("log %s: fsync interval %s: must be positive (use on_commit to sync every append)", o.Name, o.FsyncInterval)
	case o.RolloverThresholdPercent < 1 || o.RolloverThresholdPercent > 100:
		return o, fmt.Errorf("log %s: rollover threshold %d%%: want 1 to 100", o.Name, o.RolloverThresholdPercent)
	case o.MaxOvershootPercent < 0:
		return o, fmt.Errorf("log %s: overshoot %d%%: must be positive", o.Name, o.MaxOvershootPercent)
	}
	return o, o.Retention.check(o.Name)
}

func (r Retention) check(name string) error {
	if r.MaxBytes < 0 || r.MaxAge < 0 || r.Interval < 0 {
		return fmt.Errorf("log %s: retention bounds must be positive", name)
	}
	return nil
}
