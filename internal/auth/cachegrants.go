package auth

// A Scope says how much of a cache a principal may touch.
type Scope uint8

// The scopes, from none of the keys to all of them.
const (
	ScopeNone Scope = iota
	ScopeKeys       // some keys: ask for each
	ScopeAll        // every key
)

// CanReadCache says whether key may be read, watched or its counter read:
// cache.read on the cache, or on the key itself. A grant on cache:T/N/C covers
// all keys; cache:T/N/C/K one key; cache:T/N/C/P* the keys that begin with P.
func (g *Grants) CanReadCache(namespace, cache, key string) bool {
	return g.allowsKey(CacheRead, namespace, cache, key)
}

// CanWriteCache says whether key may be put, deleted or its counter added to:
// cache.write, on the objects of [Grants.CanReadCache].
func (g *Grants) CanWriteCache(namespace, cache, key string) bool {
	return g.allowsKey(CacheWrite, namespace, cache, key)
}

// CanWatchPrefix says whether every key that begins with prefix may be read;
// the empty prefix is the whole cache. One grant must cover them all.
func (g *Grants) CanWatchPrefix(namespace, cache, prefix string) bool {
	if ambiguous(namespace) || ambiguous(cache) {
		return false
	}
	var buf objectBuffer
	object := g.appendObject(buf[:0], "cache:", namespace, cache)
	set := &g.objects[CacheRead]
	if set.match(object) {
		return true
	}
	object = append(object, '/')
	return set.covers(append(object, prefix...))
}

// CacheReadScope says how much of the cache may be read. A caller that serves
// many keys of one cache decides once with it, and per key only on ScopeKeys.
func (g *Grants) CacheReadScope(namespace, cache string) Scope {
	return g.cacheScope(CacheRead, namespace, cache)
}

// CacheWriteScope is [Grants.CacheReadScope] for writing.
func (g *Grants) CacheWriteScope(namespace, cache string) Scope {
	return g.cacheScope(CacheWrite, namespace, cache)
}

func (g *Grants) allowsKey(action Action, namespace, cache, key string) bool {
	if ambiguous(namespace) || ambiguous(cache) {
		return false
	}
	var buf objectBuffer
	object := g.appendObject(buf[:0], "cache:", namespace, cache)
	set := &g.objects[action]
	if set.match(object) {
		return true
	}
	object = append(object, '/')
	return set.match(append(object, key...))
}

func (g *Grants) cacheScope(action Action, namespace, cache string) Scope {
	if ambiguous(namespace) || ambiguous(cache) {
		return ScopeNone
	}
	var buf objectBuffer
	object := g.appendObject(buf[:0], "cache:", namespace, cache)
	set := &g.objects[action]
	if set.match(object) {
		return ScopeAll
	}
	object = append(object, '/')
	if set.covers(object) {
		return ScopeAll
	}
	if _, found := g.keyed[action][string(object)]; found || set.wildReaches(object) {
		return ScopeKeys
	}
	return ScopeNone
}
