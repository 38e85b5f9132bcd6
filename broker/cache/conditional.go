package cache

import "github.com/felixlog/felix/broker/placed"

// A Condition is what must hold for a conditional write. The zero Condition
// always holds.
type Condition struct {
	kind    conditionKind
	version uint64
}

type conditionKind uint8

const (
	always conditionKind = iota
	absent
	atVersion
)

// Absent holds when the key has no live entry.
func Absent() Condition { return Condition{kind: absent} }

// AtVersion holds when the key's live entry has this version.
func AtVersion(v uint64) Condition { return Condition{kind: atVersion, version: v} }

// holds judges a live entry, nil for none.
func (c Condition) holds(e *entry) bool {
	switch c.kind {
	case absent:
		return e == nil
	case atVersion:
		return e != nil && e.version == c.version
	default:
		return true
	}
}

// A Result is the answer to a write. A condition that does not hold is an
// answer, not an error.
type Result struct {
	Applied bool
	// Version is that of the live entry afterwards: the new one of an applied
	// put, the current one of a refusal. HasVersion is false when there is no
	// live entry, as after an applied delete.
	Version    uint64
	HasVersion bool
	// Removed is what a delete removed. HasRemoved and Applied are false when
	// the key had no live entry.
	Removed    Item
	HasRemoved bool
}

func resultOf(applied bool, e *entry) Result {
	if e == nil {
		return Result{Applied: applied}
	}
	return Result{Applied: applied, Version: e.version, HasVersion: true}
}

func (c *Cache) put(shard uint32, key, value []byte, ttl TTL, cond Condition) (Result, error) {
	s := c.store
	deadline, err := ttl.deadline(s.clock)
	if err != nil {
		return Result{}, err
	}
	size := entrySize(len(key), len(value))
	if size > s.cfg.MaxBytes {
		return Result{}, &TooLargeError{Size: size, Limit: s.cfg.MaxBytes}
	}
	scope, err := c.scope(shard)
	if err != nil {
		return Result{}, err
	}
	stored := append(make([]byte, 0, len(value)), value...)
	sh := s.shardOf(scope, key)
	for {
		sh.mu.Lock()
		if err := c.still(shard, scope); err != nil {
			sh.mu.Unlock()
			return Result{}, err
		}
		e := s.live(sh, sh.index[scoped{scope, string(key)}])
		if !cond.holds(e) {
			r := resultOf(false, e)
			sh.mu.Unlock()
			return r, nil
		}
		growth, entries := size, int64(1)
		if e != nil {
			growth, entries = size-e.size(), 0
		}
		if s.reserve(growth, entries) {
			if e == nil {
				e = sh.insert(scoped{scope, string(key)})
			}
			e.value = stored
			e.version = s.version.Add(1)
			e.used = e.version
			sh.setDeadline(e, deadline)
			sh.puts++
			r := resultOf(true, e)
			sh.mu.Unlock()
			return r, nil
		}
		sh.mu.Unlock()
		// The lock is dropped to make room, so all is judged again.
		s.makeRoom(e)
	}
}

// still says that entries of a scope may be written: who removes them does so
// after the shard is served no longer, under the lock held here.
func (c *Cache) still(shard uint32, scope uint64) error {
	now, err := c.scope(shard)
	if err == nil && now != scope {
		err = &placed.NotServedError{Shard: c.placedName(shard), Reason: placed.Moving}
	}
	return err
}

func (c *Cache) remove(shard uint32, key []byte, cond Condition) (Item, Result, error) {
	s := c.store
	scope, err := c.scope(shard)
	if err != nil {
		return Item{}, Result{}, err
	}
	sh := s.shardOf(scope, key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.live(sh, sh.index[scoped{scope, string(key)}])
	if e == nil || !cond.holds(e) {
		return Item{}, resultOf(false, e), nil
	}
	item := e.item()
	sh.deletes++
	s.drop(sh, e)
	return item, Result{Applied: true}, nil
}
