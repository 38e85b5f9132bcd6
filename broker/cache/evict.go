package cache

// sampleSize is how many entries are compared for the least recently used. A
// store of no more than that evicts in exact order.
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

func (s *Store) evict(keep *entry) {
	draw := mix(s.cfg.Seed + s.draws.Add(1))
	var victim *entry
	var home *shard
	var used uint64
	seen := 0
	for i := range uint64(shardCount) {
		sh := &s.shards[(draw+i)%shardCount]
		sh.mu.Lock()
		n := len(sh.entries)
		for j := range min(sampleSize-seen, n) {
			e := sh.entries[(int(draw>>32)+j)%n]
			seen++
			if e != keep && (victim == nil || e.used < used) {
				victim, home, used = e, sh, e.used
			}
		}
		sh.mu.Unlock()
		if seen >= sampleSize {
			break
		}
	}
	if victim == nil {
		return
	}
	home.mu.Lock()
	defer home.mu.Unlock()
	if victim.slot >= 0 { // not gone meanwhile
		s.drop(home, victim)
		s.evictions.Add(1)
	}
}
