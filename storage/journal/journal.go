package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/fs"
)

// Defaults of Options.
const (
	DefaultFileBytes = 64 << 20
	DefaultMaxBytes  = 256 << 10
)

// Options are the settings of a journal. Zero means the default.
type Options struct {
	// FileBytes is the size of each of the two files.
	FileBytes int64
	// MaxBytes is the most a log may hand over at once; a larger round is
	// written twice for no gain, so the log syncs it itself.
	MaxBytes int
	// Sync syncs a file of the journal for a round; nil is its own Sync. A
	// store counts and times it there.
	Sync func(fs.File) error
	// Logger is nil for silence.
	Logger *slog.Logger
}

// A Journal is open. Its methods are safe for concurrent use.
type Journal struct {
	fs   fs.FS
	root string
	opts Options

	stats counters

	mu      sync.Mutex
	gather  *round // what the next write takes
	spare   *round // for after that
	writing bool   // somebody leads
	closed  bool
	failed  bool // a write or sync failed: nothing is taken any more

	// What follows belongs to whoever leads.
	files  [2]*file
	active int
	epoch  uint64
	// written is the number of the newest round in the files.
	written atomic.Uint64

	checkpoints sync.WaitGroup

	voidMu sync.Mutex
	voids  voids
}

// A round gathers what one write makes durable.
type round struct {
	buf     []byte // the header's place, then the entries
	entries int
	members []*Member
}

func (r *round) reset() {
	clear(r.members)
	r.members, r.entries = r.members[:0], 0
	if cap(r.buf) > maxKeptBuffer {
		r.buf = nil
	}
	r.buf = append(r.buf[:0], make([]byte, roundHeaderSize)...)
}

// maxKeptBuffer is the largest buffer kept for the next round.
const maxKeptBuffer = 4 << 20

// A file is one of the two.
type file struct {
	fs.File
	path string
	end  int64
	// filled is how far it has bytes on the device: below, a round changes
	// neither its size nor its blocks.
	filled int64

	mu sync.Mutex
	// logs have rounds in the file that may be nowhere else on the device.
	logs map[*Member]struct{}
	// busy: it must not be written over yet.
	busy bool
}

// A Log is what the journal needs of a log that uses it.
type Log interface {
	// SyncFiles makes everything the log has written durable in its own
	// files. After an error they may never be.
	SyncFiles() error
}

// A Member is one log's use of the journal, for one caller at a time.
type Member struct {
	j    *Journal
	name string
	log  Log

	woken chan struct{} // capacity 1
	lead  bool          // what woke it: its turn to write, not the end of its round
	ok    bool
	// last is the number of the newest round that may hold something of the
	// log, by this member or by one before it.
	last uint64
}

// Join lets a log use the journal under the name of its directory, relative to
// the root of the store.
func (j *Journal) Join(name string, log Log) *Member {
	return &Member{j: j, name: name, log: log, woken: make(chan struct{}, 1), last: j.newest()}
}

// Commit makes bytes durable that the log has written to a segment at a
// position, and waits for it. It answers false when the log has to sync its own
// file instead; the bytes may be durable even then.
func (m *Member) Commit(segment uint64, position int64, bytes []byte) bool {
	if len(bytes) > m.j.opts.MaxBytes {
		return false
	}
	e := entry{log: m.name, segment: segment, position: position, bytes: bytes}
	return m.j.commit(m, &e)
}

// Void says that what the log has committed so far is durable in its own files
// and must not be written there again. The log calls it before it cuts a file,
// and does not cut it after an error.
func (m *Member) Void() error { return m.j.void(m.name, m.last) }

func (j *Journal) commit(m *Member, e *entry) bool {
	j.mu.Lock()
	if j.closed || j.failed || int64(len(j.gather.buf)+e.size()) > j.opts.FileBytes {
		j.mu.Unlock()
		return false
	}
	r := j.gather
	r.buf = e.append(r.buf)
	r.entries++
	r.members = append(r.members, m)
	if j.writing {
		j.mu.Unlock()
		<-m.woken
		if !m.lead {
			return m.ok
		}
		m.lead = false
	} else {
		j.writing = true
		j.mu.Unlock()
	}
	return j.leadRound(m)
}

// leadRound writes what has gathered, tells those it belongs to, and hands the
// lead to the first of those who came meanwhile: no round waits for a goroutine
// that has nothing in it.
func (j *Journal) leadRound(leader *Member) bool {
	j.mu.Lock()
	r := j.gather
	j.gather = j.spare
	j.spare = nil
	j.mu.Unlock()

	ok := j.write(r)
	number := j.newest()
	for _, m := range r.members {
		m.last = number
		if m != leader {
			m.ok = ok
			m.woken <- struct{}{}
		}
	}
	r.reset()

	j.mu.Lock()
	defer j.mu.Unlock()
	j.spare = r
	if len(j.gather.members) == 0 {
		j.writing = false
		return ok
	}
	next := j.gather.members[0]
	next.lead = true
	next.woken <- struct{}{}
	return ok
}

// write puts a round on the device. The caller leads.
func (j *Journal) write(r *round) bool {
	f := j.files[j.active]
	size := aligned(int64(len(r.buf)))
	if f.end+size > j.opts.FileBytes {
		if j.files[1-j.active].isBusy() {
			j.stats.busy.Add(1)
			return false
		}
		if err := j.turn(); err != nil {
			return j.fail("turn", err)
		}
		f = j.files[j.active]
	}
	seal(r.buf, j.epoch, j.written.Load()+1, r.entries)
	f.hold(r.members)
	err := f.fill(f.end+size, j.opts.FileBytes)
	if err == nil {
		_, err = f.WriteAt(r.buf, f.end)
	}
	if fs.IsFull(err) {
		j.stats.busy.Add(1)
		return false // the round is not in the file, not whole; the next may find room
	}
	if err != nil {
		return j.fail("write", err)
	}
	if err := j.opts.Sync(f.File); err != nil {
		return j.fail("sync", err)
	}
	f.end += size
	j.written.Add(1)
	j.stats.rounds.Add(1)
	j.stats.entries.Add(uint64(r.entries))
	j.stats.bytes.Add(uint64(len(r.buf)))
	return true
}

// fillAhead is how much of a file is filled with zeros at once, in bytes, when
// it is first written: so many rounds to come then sync as cheaply as those that
// write over old ones.
const fillAhead = 1 << 20

// fill fills the file with zeros up to end, and ahead of it, unless it is.
func (f *file) fill(end, limit int64) error {
	if end <= f.filled {
		return nil
	}
	to := max(end, min(end+fillAhead, limit))
	for at := f.filled; at < to; at += fillAhead {
		if _, err := f.WriteAt(zeros[:min(fillAhead, to-at)], at); err != nil {
			return err
		}
	}
	f.filled = to
	return nil
}

var zeros [fillAhead]byte

// newest is the number of the newest round that may be in the files. The one that
// made the journal be given up may be there, whole, under the next number, which
// no other will have.
func (j *Journal) newest() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed {
		return j.written.Load() + 1
	}
	return j.written.Load()
}

// fail gives the journal up until the next start. What it holds stays there for
// a recovery.
func (j *Journal) fail(op string, err error) bool {
	j.mu.Lock()
	j.failed = true
	j.mu.Unlock()
	j.stats.failures.Add(1)
	j.opts.Logger.Error("commit journal given up: logs sync their own files", "op", op, "error", err)
	return false
}

// turn goes on to the other file, which is not busy, and has the logs of the
// full one sync their own.
func (j *Journal) turn() error {
	full, next := j.files[j.active], j.files[1-j.active]
	if err := next.begin(); err != nil {
		return err
	}
	full.setBusy(true)
	j.checkpoints.Go(func() { j.checkpoint(full) })
	j.active = 1 - j.active
	j.epoch++
	return nil
}

// begin makes a file ready to be written over: no header stands at its
// beginning, whatever becomes of the first round.
func (f *file) begin() error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size > 0 {
		var zero [roundHeaderSize]byte
		if _, err := f.WriteAt(zero[:], 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	f.end = 0
	return nil
}

// checkpoint lets go of a file once every log that has rounds in it has synced
// its own files. If one cannot, the file is kept for the next recovery.
func (j *Journal) checkpoint(f *file) {
	var errs error
	for _, m := range f.members() {
		if err := m.log.SyncFiles(); err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		f.forget(m)
	}
	if errs != nil {
		j.stats.failures.Add(1)
		j.opts.Logger.Error("commit journal keeps a file for recovery", "file", f.path, "error", errs)
		return
	}
	j.stats.checkpoints.Add(1)
	f.setBusy(false)
}

func (f *file) isBusy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

func (f *file) setBusy(busy bool) {
	f.mu.Lock()
	f.busy = busy
	f.mu.Unlock()
}

// hold notes that logs have something in the file.
func (f *file) hold(members []*Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range members {
		f.logs[m] = struct{}{}
	}
}

func (f *file) members() []*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.logs))
}

func (f *file) forget(m *Member) {
	f.mu.Lock()
	delete(f.logs, m)
	f.mu.Unlock()
}

// counters are a journal's totals.
type counters struct{ rounds, entries, bytes, checkpoints, busy, failures atomic.Uint64 }

// Stats are the totals of a journal.
type Stats struct {
	// Rounds were written and synced, with Entries of logs and Bytes in all.
	Rounds, Entries, Bytes uint64
	// Checkpoints let a file go; Busy counts rounds for which there was none
	// free, or no room on the disk.
	Checkpoints, Busy uint64
	// Failures of a write, a sync or a checkpoint.
	Failures uint64
}

// Stats reads the totals.
func (j *Journal) Stats() Stats {
	c := &j.stats
	return Stats{
		Rounds: c.rounds.Load(), Entries: c.entries.Load(), Bytes: c.bytes.Load(),
		Checkpoints: c.checkpoints.Load(), Busy: c.busy.Load(), Failures: c.failures.Load(),
	}
}

// Dir is the directory of the journal in a store's root.
func Dir(root string) string { return filepath.Join(root, DirName) }

// DirName names the journal's directory.
const DirName = "journal"
