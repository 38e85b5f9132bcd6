package kvlog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/felixlog/felix/storage/shardlog"
)

// A Snapshot is the live entries whose key has a prefix, in order of Version.
//
// It is exact together with what [Map.Changes] reads from At on: an entry that
// was overwritten or removed while the snapshot was taken may be missing here,
// and the change that did so comes there.
type Snapshot struct {
	// At is the offset to read changes from.
	At      uint64
	core    *core
	entries []snapshotEntry
}

type snapshotEntry struct {
	name  string
	entry entry
}

// Range takes a snapshot; an empty prefix takes all. It holds about 60 bytes a
// key and no values, and writers do not wait for it.
func (m *Map) Range(prefix []byte) (*Snapshot, error) {
	c := m.core
	if err := c.catchUp(); err != nil {
		return nil, err
	}
	s := &Snapshot{At: c.applied.Load(), core: c}
	now, p := c.nowMillis(), string(prefix)
	err := c.walk(func(_ uint32, name string, e *entry) bool {
		if strings.HasPrefix(name, p) && !e.lapsed(now) && e.word < s.At {
			s.entries = append(s.entries, snapshotEntry{name, *e})
		}
		return true
	})
	slices.SortFunc(s.entries, func(a, b snapshotEntry) int { return cmp.Compare(a.entry.word, b.entry.word) })
	return s, err
}

// Len is how many entries are left to read.
func (s *Snapshot) Len() int { return len(s.entries) }

// Next reads entries as puts until their values reach maxBytes, at least one;
// none at the end. Key and Value are the caller's. *shardlog.TrimmedError: a
// value was overwritten since and compaction has dropped it; take a new snapshot.
func (s *Snapshot) Next(maxBytes int) ([]Change, error) {
	var out []Change
	for size := 0; len(s.entries) > 0 && (size < maxBytes || len(out) == 0); s.entries = s.entries[1:] {
		c, err := s.core.changeAt(&s.entries[0])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		size += len(c.Key) + len(c.Value)
	}
	return out, nil
}

// changeAt reads the value an entry had, where it lies now.
func (c *core) changeAt(s *snapshotEntry) (Change, error) {
	key := []byte(s.name)
	for e := s.entry; ; {
		_, item, err := c.readAt(nil, key, e)
		if err == nil {
			return Change{
				Op: Put, Key: key, Value: item.Value,
				Offset: e.offset, Version: e.word, ExpiresAtMillis: e.expires,
			}, nil
		}
		now, failed := c.get(key)
		switch {
		case failed != nil:
			return Change{}, failed
		case !now.present || now.entry.word != s.entry.word:
			return Change{}, &shardlog.TrimmedError{Requested: e.offset, Oldest: c.log.Base()}
		case now.entry.offset == e.offset:
			return Change{}, err
		}
		e = now.entry
	}
}

// RangeKey is Range for one key.
func (m *Map) RangeKey(key []byte) (*Snapshot, error) {
	c := m.core
	if err := c.catchUp(); err != nil {
		return nil, err
	}
	s := &Snapshot{At: c.applied.Load(), core: c}
	held, err := c.get(key)
	if held.live(c.nowMillis()) && held.entry.word < s.At {
		s.entries = []snapshotEntry{{string(key), held.entry}}
	}
	return s, err
}
