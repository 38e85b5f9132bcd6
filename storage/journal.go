package storage

import (
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/shardlog"
)

const (
	// journalShare of the free space is the most a file of the commit journal
	// takes unless its size is set.
	journalShare = 32
	// minJournalBytes is the least a journal is kept for, unless its size is
	// set: on a smaller disk it would turn its files over all the time.
	minJournalBytes = 1 << 20
)

// openJournal brings what a crash left in the commit journal to its logs, and
// keeps the journal open where logs are to use it.
func (s *Store) openJournal() error {
	size := s.cfg.JournalBytes
	if size == 0 {
		size = journal.DefaultFileBytes
		if free, err := s.fs.Free(s.cfg.Root); err == nil {
			size = min(size, int64(min(free, 1<<40))/journalShare)
		}
		if size < minJournalBytes {
			size = -1
		}
	}
	used := s.cfg.Log.Fsync == shardlog.OnCommit && size > 0
	j, err := journal.Open(s.fs, s.cfg.Root, journal.Options{FileBytes: max(size, 0), Logger: s.logger})
	if err != nil {
		return err
	}
	if !used {
		return j.Close()
	}
	s.journal = j
	return nil
}

// JournalStats are the totals of the commit journal, zero where there is none.
func (s *Store) JournalStats() journal.Stats {
	if s.journal == nil {
		return journal.Stats{}
	}
	return s.journal.Stats()
}
