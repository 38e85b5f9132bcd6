package cache

// sampleSize is how many entries are compared for the least recently used.
const sampleSize = 8

// expiredAtOnce bounds the expired entries removed under one lock.
const expiredAtOnce = 64

// makeRoom removes expired entries if there are any, and otherwise the least
// recently used one of a sample without keep, which is the entry about to be
// written.
func (s *Store) makeRoom(keep *entry) {
	if !s.dropExpired() {
		s.evict(keep)
	}
}

// dropExpired empties some of the first shard found to have expired entries.
func (s *Store) dropExpired() bool {
	now := s.clock.Now().UnixMilli()
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.earliest.Load() > now {
			continue
		}
		sh.mu.Lock()
		n := 0
		for ; n < expiredAtOnce && len(sh.expiry) > 0 && sh.expiry[0].deadline <= now; n++ {
			s.drop(sh, sh.expiry[0])
		}
		sh.mu.Unlock()
		if n > 0 {
			s.expired.Add(uint64(n))
			return true
		}
	}
	return false
}

// evict removes the least recently used of a sample: one entry from each of
// some shards, so that no shard is emptied because it is small. Where there
// are too few entries for that, all are compared.
func (s *Store) evict(keep *entry) {
	draw := mix(s.cfg.Seed + s.draws.Add(1))
	v := victim{keep: keep}
	seen := 0
	for i := range uint64(shardCount) {
		seen += v.sample(&s.shards[(draw+i)%shardCount], draw>>32, 1)
		if seen == sampleSize {
			break
		}
	}
	for i := 0; i < shardCount && seen < sampleSize; i++ {
		v.sample(&s.shards[i], 0, sampleSize)
	}
	if v.entry == nil {
		return
	}
	v.home.mu.Lock()
	defer v.home.mu.Unlock()
	if v.entry.slot >= 0 { // not gone meanwhile
		s.drop(v.home, v.entry)
		s.evictions.Add(1)
	}
}

// A victim is the least recently used entry seen so far, other than keep.
type victim struct {
	keep  *entry
	entry *entry
	home  *shard
	used  uint64
}

// sample looks at up to n entries of a shard, from a drawn one on, and says
// how many there were.
func (v *victim) sample(sh *shard, draw uint64, n int) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	there := len(sh.entries)
	n = min(n, there)
	for i := range n {
		e := sh.entries[(int(draw)+i)%there]
		if e != v.keep && (v.entry == nil || e.used < v.used) {
			v.entry, v.home, v.used = e, sh, e.used
		}
	}
	return n
}
