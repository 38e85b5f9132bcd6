package cache

// ShardInfo describes one shard of a cache on the log.
type ShardInfo struct {
	Shard uint32
	// Err is an [*UnavailableError] when the shard cannot be used; the rest
	// is zero then.
	Err error
	// Entries are the keys of the index and Bytes their records.
	Entries, Bytes int64
	// LogBytes is what the log occupies on disk, dead records included.
	LogBytes int64
	// Base is the oldest offset on disk and Tail the next to be written.
	Base, Tail uint64
	// Watches are open on the shard.
	Watches int
	// Counters are those of the shard; 0 until the first of them is used.
	Counters int64
}

// Info describes the shards of a cache on the log, and nothing of one in
// memory.
func (c *Cache) Info() []ShardInfo {
	infos := make([]ShardInfo, len(c.shards))
	for i := range c.shards {
		infos[i] = c.shards[i].info()
	}
	return infos
}

func (s *logShard) info() ShardInfo {
	info := ShardInfo{Shard: s.index}
	open, err := s.values.Use()
	if err != nil {
		info.Err = err
		return info
	}
	info.Entries = int64(open.Index.Len())
	info.Bytes = open.Index.LiveBytes()
	info.LogBytes = open.Log.Bytes()
	info.Base, info.Tail = open.Log.Base(), open.Log.Tail()
	info.Watches = int(s.hub.count.Load())
	if counters := s.counters.Opened(); counters != nil {
		info.Counters = int64(counters.Index.Len())
	}
	return info
}
