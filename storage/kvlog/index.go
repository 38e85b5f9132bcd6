package kvlog

import "math"

// An entry is what the index knows of one key: 40 bytes, no pointers.
type entry struct {
	// offset is that of the record that defines the entry: while it lies below
	// a cut, compaction has the entry to carry forward. Of a counter, the
	// oldest record its sum is folded from.
	offset uint64
	// word is the entry version of a cache value, and the sum of a counter.
	word    uint64
	expires int64 // Unix milliseconds, 0 for never
	// position is that of the batch in its segment. A counter's value is not
	// read from the log: here lies the offset of the newest record in its sum.
	position int64
	segment  uint32
	length   uint32 // bytes of log the entry keeps alive
}

func (e *entry) lapsed(nowMillis int64) bool { return e.expires != 0 && e.expires <= nowMillis }

// A state is what a key holds: an entry or nothing.
type state struct {
	present bool
	entry   entry
}

func (s state) live(nowMillis int64) bool { return s.present && !s.entry.lapsed(nowMillis) }

const chunkSlots = 4096

// A slot is a key and its entry. An entry never moves while its key lives, so
// a walk by slot number sees every key that lives throughout, and an index of
// millions grows without copying itself. A free slot has no key.
type slot struct {
	key   string
	entry entry
}

// An index maps keys to entries. It is not safe for concurrent use.
type index struct {
	byKey     map[string]uint32
	chunks    []*[chunkSlots]slot
	used      uint32   // slots handed out at least once
	free      []uint32 // of them, those without a key
	live      int64    // bytes of log that live entries take
	expiring  int      // entries with a deadline
	deadlines deadlines
}

func newIndex() *index { return &index{byKey: make(map[string]uint32)} }

func (x *index) at(n uint32) *slot { return &x.chunks[n/chunkSlots][n%chunkSlots] }

func (x *index) len() int { return len(x.byKey) }

func (x *index) get(key []byte) state {
	n, ok := x.byKey[string(key)]
	if !ok {
		return state{}
	}
	return state{true, x.at(n).entry}
}

// intern is key as a string, the one the index holds if it holds it.
func (x *index) intern(key []byte) string {
	if n, ok := x.byKey[string(key)]; ok {
		return x.at(n).key
	}
	return string(key)
}

func (x *index) set(key string, e entry) {
	n, ok := x.byKey[key]
	if !ok {
		n = x.take()
		x.at(n).key = key
		x.byKey[key] = n
	}
	old := &x.at(n).entry
	x.live += int64(e.length) - int64(old.length)
	renewed := e.expires != old.expires
	x.count(old.expires, -1)
	x.count(e.expires, +1)
	*old = e
	// The same deadline keeps the place it has in the order.
	if e.expires != 0 && renewed {
		x.addDeadline(e.expires, n)
	}
}

func (x *index) remove(key string) {
	n, ok := x.byKey[key]
	if !ok {
		return
	}
	s := x.at(n)
	x.live -= int64(s.entry.length)
	x.count(s.entry.expires, -1)
	*s = slot{}
	delete(x.byKey, key)
	x.free = append(x.free, n)
}

func (x *index) count(expires int64, by int) {
	if expires != 0 {
		x.expiring += by
	}
}

func (x *index) take() uint32 {
	if last := len(x.free) - 1; last >= 0 {
		n := x.free[last]
		x.free = x.free[:last]
		return n
	}
	if x.used == math.MaxUint32 {
		panic("kvlog: more than 2^32 keys in one shard")
	}
	if int(x.used/chunkSlots) == len(x.chunks) {
		x.chunks = append(x.chunks, new([chunkSlots]slot))
	}
	x.used++
	return x.used - 1
}
