package shardlog

import (
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/segment"
)

// joinJournal lets the log make its rounds durable through the commit journal
// of its store, where it has one and promises a sync before each answer.
func (l *Log) joinJournal() {
	if l.opts.Journal != nil && l.opts.Fsync == OnCommit {
		l.member = l.opts.Journal.Join(l.opts.JournalName, journaled{l})
	}
}

// commitJournal makes a round durable through the journal. It answers false
// where the segment has to be synced instead: always before its header is on the
// device, of which the journal knows nothing.
func (l *Log) commitJournal(s *seg, bytes []byte) bool {
	if l.member == nil || s.synced.Load() < segment.HeaderSize || !l.member.Commit(s.id, s.written-int64(len(bytes)), bytes) {
		return false
	}
	if s.written-s.synced.Load() >= maxUnsynced && l.following.CompareAndSwap(false, true) {
		l.follow.Go(func() {
			_ = l.syncNow() // a failure has poisoned the log, which tells all
			l.following.Store(false)
		})
	}
	return true
}

// maxUnsynced is how many bytes of a segment the journal may be ahead of its
// file, about, before the file is synced beside the rounds: a roll, a flush or a
// close syncs the rest of it while others wait.
const maxUnsynced = 8 << 20

// leaveJournal makes what the journal has for the log durable in its own files
// and void in the journal, before those are cut. The caller holds io.
func (l *Log) leaveJournal() error {
	if l.member == nil {
		return nil
	}
	if s := l.active; s.synced.Load() < s.written {
		if err := l.syncSegment(s, s.held.file, s.written); err != nil {
			return err
		}
	}
	if err := l.member.Void(); err != nil {
		return l.fileError("void the commit journal", err)
	}
	return nil
}

// journaled is a log as the journal knows it.
type journaled struct{ log *Log }

var _ journal.Log = journaled{}

// SyncFiles makes the log durable in its own files; closing it did that.
func (j journaled) SyncFiles() error {
	l := j.log
	if l.finished.Load() {
		return nil
	}
	err := l.syncNow()
	if l.finished.Load() {
		return nil
	}
	return err
}
