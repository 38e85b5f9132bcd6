package storage

import (
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/shardlog"
)

const (
	// journalShare of the free space is the most a file of the commit journal
	// takes.
	journalShare = 32
	// minJournalBytes is the least it is cut to: smaller files would turn over
	// all the time, and logs had better sync their own.
	minJournalBytes = 1 << 20
)

// openJournal brings what a crash left in the commit journal to its logs, and
// keeps the journal open where logs are to use it.
func (s *Store) openJournal() error {
	size := s.cfg.JournalBytes
	if size == 0 {
		size = journal.DefaultFileBytes
	}
	if free, err := s.fs.Free(s.cfg.Root); err == nil {
		if share := int64(min(free, 1<<40)) / journalShare; share < size {
			if size = share; size < minJournalBytes {
				size = -1
			}
		}
	}
	used := s.cfg.Log.Fsync == shardlog.OnCommit && size > 0
	j, err := journal.Open(s.fs, s.cfg.Root, journal.Options{FileBytes: max(size, 0), Sync: s.syncJournal, Logger: s.logger})
	if err != nil {
		return err
	}
	if !used {
		return j.Close()
	}
	s.journal = j
	return nil
}

// syncJournal counts and times a round of the journal as the flush it is.
func (s *Store) syncJournal(f fs.File) error {
	start := s.clock.Now()
	err := f.Sync()
	s.metrics.Syncs.Add(1)
	s.metrics.SyncDuration.Observe(s.clock.Now().Sub(start))
	return err
}

// JournalStats are the totals of the commit journal, zero where there is none.
func (s *Store) JournalStats() journal.Stats {
	if s.journal == nil {
		return journal.Stats{}
	}
	return s.journal.Stats()
}
