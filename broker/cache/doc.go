// Package cache is the key-value engine of a broker (broker 9, wire 11). Scope
// is (tenant, namespace, cache, key). A [Cache] is kept in one of two ways behind
// one handle.
//
// In memory, values live within a bound for the whole broker. When it is
// reached, expired entries go first, then the least recently used of a sample.
//
// On the log ([Options.Durable]) each shard is a log of its own with an index
// over it (package kvlog): an acknowledged write survives a restart, the log is
// compacted in the background, and nothing is ever evicted. Only such a cache
// can be watched and has counters.
//
// # Expiry
//
// Each put sets its own absolute deadline or none. An entry is never returned
// at or after its deadline, whether or not it has been removed yet. On the log a
// pass each second writes the removal of what has expired, which watches see as
// such.
//
// Deadlines are judged by the wall clock of the process's start and the time
// that has passed since, so a wall clock that is set while the broker runs
// neither expires nor revives anything. A restart takes the wall clock as it is
// then: an entry that had expired less than a second before the restart, whose
// removal was not on the log yet, is there again if the clock was set back
// meanwhile, until it reaches the deadline again.
//
// # The path of a write on the log
//
// [Cache.Write] hands the write to the index, which judges its condition,
// appends and returns. The log's committer calls back in offset order: the value
// becomes readable, the shard's watches are given the change, the writer is
// answered.
package cache
