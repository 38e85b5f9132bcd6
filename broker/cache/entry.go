package cache

import "container/heap"

// EntryOverhead is what an entry is charged beside its key and value, in
// bytes: its part of the map, of the expiry order and of the bookkeeping.
const EntryOverhead = 160

func entrySize(key, value int) int64 { return int64(key) + int64(value) + EntryOverhead }

// scoped is a key within the cache, or the shard of one, it belongs to.
type scoped struct {
	scope uint64
	key   string
}

// An entry is one key's value. Its shard's lock guards it.
type entry struct {
	name    scoped
	value   []byte // never modified, only replaced
	version uint64
	// used is the newest version anywhere when the entry was last read or
	// written: time counted in puts, which is when eviction asks for it.
	used     uint64
	deadline int64 // unix milliseconds, 0 for never
	slot     int   // index in the shard's entries
	order    int   // index in the shard's expiry order, -1 without deadline
}

func (e *entry) size() int64 { return entrySize(len(e.name.key), len(e.value)) }

func (e *entry) item() Item {
	return Item{Value: e.value, Version: e.version, ExpiresAtMillis: e.deadline}
}

// An expiryOrder is a heap of the entries with a deadline, the earliest first.
type expiryOrder []*entry

var _ heap.Interface = (*expiryOrder)(nil)

func (o expiryOrder) Len() int           { return len(o) }
func (o expiryOrder) Less(i, j int) bool { return o[i].deadline < o[j].deadline }

func (o expiryOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].order, o[j].order = i, j
}

func (o *expiryOrder) Push(x any) {
	e := x.(*entry)
	e.order = len(*o)
	*o = append(*o, e)
}

func (o *expiryOrder) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	e.order = -1
	return e
}
