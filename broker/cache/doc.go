// Package cache is the key-value engine of a broker without storage: scope is
// (tenant, namespace, cache, key), values live in memory within a bound for
// the whole broker (broker 9).
//
// An entry expires at an absolute time and is never returned afterwards,
// whether or not it has been removed yet. When the bound is reached, expired
// entries go first, then the least recently used of a sample.
package cache
