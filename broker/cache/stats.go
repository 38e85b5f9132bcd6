package cache

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Stats are the totals of a broker's caches.
type Stats struct {
	// Entries and Bytes are held in memory now, those expired but not yet
	// removed included.
	Entries, Bytes int64
	// LogEntries are the keys of the caches on the log, LogLiveBytes the
	// records that hold them and LogBytes what the logs occupy on disk.
	LogEntries, LogLiveBytes, LogBytes int64
	// Watches are open now.
	Watches int64
	// Hits and Misses count gets.
	Hits, Misses uint64
	// Puts and Deletes were applied.
	Puts, Deletes uint64
	// Evictions removed a live entry to make room; Expired entries were
	// removed after their deadline.
	Evictions, Expired uint64
}

// Stats reads the totals.
func (s *Store) Stats() Stats {
	st := Stats{
		Entries: s.entries.Load(), Bytes: s.bytes.Load(),
		Evictions: s.evictions.Load(), Expired: s.expired.Load(),
	}
	s.addLog(&st)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Hits += sh.hits
		st.Misses += sh.misses
		st.Puts += sh.puts
		st.Deletes += sh.deletes
		sh.mu.Unlock()
	}
	return st
}

// logCounters count what happens in caches on the log.
type logCounters struct {
	hits, misses, puts, deletes atomic.Uint64
}

func (c *logCounters) applied(op Op) {
	if op == Put {
		c.puts.Add(1)
	} else {
		c.deletes.Add(1)
	}
}

// addLog adds the caches on the log.
func (s *Store) addLog(st *Stats) {
	st.Hits, st.Misses = s.onLog.hits.Load(), s.onLog.misses.Load()
	st.Puts, st.Deletes = s.onLog.puts.Load(), s.onLog.deletes.Load()
	for _, sh := range s.logShards() {
		st.Watches += sh.hub.count.Load()
		if open := sh.values.Opened(); open != nil {
			st.LogEntries += int64(open.Index.Len())
			st.LogLiveBytes += open.Index.LiveBytes()
			st.LogBytes += open.Log.Bytes()
		}
		if open := sh.counters.Opened(); open != nil {
			st.LogBytes += open.Log.Bytes()
		}
	}
}

func (s *Store) logShards() []*logShard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.newest))
}
