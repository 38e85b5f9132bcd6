package cache

// ShardInfo describes one shard of a cache on the log.
type ShardInfo struct {
	Shard uint32
	// Err says why the shard cannot be used, as [Cache.Ready] does; the rest
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
	if !c.Durable() {
		return nil
	}
	infos := make([]ShardInfo, c.opts.Shards)
	for i := range infos {
		sh, err := c.logShard(uint32(i))
		if err != nil {
			infos[i] = ShardInfo{Shard: uint32(i), Err: err}
			continue
		}
		infos[i] = sh.info()
	}
	return infos
}

func (s *logShard) info() ShardInfo {
	info := ShardInfo{Shard: s.index}
	open, err := s.values.Use()
	if err != nil {
		info.Err = s.outcome(err)
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
