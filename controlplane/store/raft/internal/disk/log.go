package disk

import (
	"fmt"

	hraft "github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
)

var (
	_ hraft.LogStore          = (*Store)(nil)
	_ hraft.MonotonicLogStore = (*Store)(nil)
)

// IsMonotonic says that the log has no gaps, so that the library empties it
// when it takes a snapshot from another member.
func (s *Store) IsMonotonic() bool { return true }

// FirstIndex of the log, 0 when it is empty.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, nil
}

// LastIndex of the log, 0 when it is empty.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, nil
}

// GetLog reads an entry; hraft.ErrLogNotFound if there is none.
func (s *Store) GetLog(index uint64, l *hraft.Log) error {
	return s.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(logBucket).Get(bytesOf(index))
		if v == nil {
			return hraft.ErrLogNotFound
		}
		if err := parseEntry(index, v, l); err != nil {
			return &DamagedError{Path: s.db.Path(), What: fmt.Sprintf("entry %d: %v", index, err)}
		}
		return nil
	})
}

// StoreLog stores one entry.
func (s *Store) StoreLog(l *hraft.Log) error { return s.StoreLogs([]*hraft.Log{l}) }

// StoreLogs stores entries, and the commit index staged, in one write.
func (s *Store) StoreLogs(logs []*hraft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	commit, next := s.commit, s.last+1
	s.mu.Unlock()
	if next > 1 && logs[0].Index != next {
		return fmt.Errorf("entry %d does not follow entry %d", logs[0].Index, next-1)
	}
	err := s.update("log", func(tx *bolt.Tx) error {
		b := tx.Bucket(logBucket)
		b.FillPercent = 0.9 // indexes only grow
		for _, l := range logs {
			size := entryHeader + len(l.Extensions) + len(l.Data)
			if err := b.Put(bytesOf(l.Index), appendEntry(make([]byte, 0, size), l)); err != nil {
				return err
			}
		}
		return tx.Bucket(marksBucket).Put(commitKey, bytesOf(commit))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == 0 {
		s.first = logs[0].Index
	}
	s.last = logs[len(logs)-1].Index
	return nil
}

// DeleteRange deletes the entries from low to high, both included: the oldest
// ones, the newest ones, or all.
func (s *Store) DeleteRange(low, high uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	first, last := s.first, s.last
	s.mu.Unlock()
	low, high = max(low, first), min(high, last)
	switch {
	case last == 0 || low > high:
		return nil
	case low > first && high < last:
		return fmt.Errorf("entries %d to %d are in the middle of the log", low, high)
	}
	err := s.update("log", func(tx *bolt.Tx) error {
		if low == first && high == last {
			if err := tx.DeleteBucket(logBucket); err != nil {
				return err
			}
			_, err := tx.CreateBucket(logBucket)
			return err
		}
		// By key: bbolt's cursors do not get past pages that this write empties.
		b := tx.Bucket(logBucket)
		for i := low; i <= high; i++ {
			if err := b.Delete(bytesOf(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case low == first && high == last:
		s.first, s.last = 0, 0
	case low == first:
		s.first = high + 1
	default:
		s.last = low - 1
	}
	return nil
}

// StageCommitted remembers that everything up to index is committed; it reaches
// the disk with the next entries, or at the end.
func (s *Store) StageCommitted(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit = max(s.commit, index)
}

// Committed is the highest index that is known to be committed and in the log.
func (s *Store) Committed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(s.commit, s.last)
}
