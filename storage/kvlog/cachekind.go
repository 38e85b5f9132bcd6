package kvlog

import (
	"context"
	"math"

	"github.com/felixlog/felix/storage/shardlog"
)

// A cacheKind gives cache records their meaning (storage 16).
type cacheKind struct{ core *core }

func (k *cacheKind) code() byte     { return 0 }
func (k *cacheKind) readsLog() bool { return true }

func (k *cacheKind) fold(rec []byte, offset uint64, at shardlog.Location, _ *index) (folded, error) {
	r, err := ParseCacheRecord(rec)
	if err != nil {
		return folded{}, err
	}
	f := folded{key: r.Key, change: changeOf(&r, offset), notify: !r.Carried}
	if r.Op != Put {
		return f, nil
	}
	if at.Segment > math.MaxUint32 || at.Length > math.MaxUint32 {
		return folded{}, &RecordError{"segment id or batch length out of range"}
	}
	f.after = state{true, entry{
		offset:   offset,
		word:     f.change.Version,
		expires:  r.ExpiresAtMillis,
		position: at.Position,
		segment:  uint32(at.Segment),
		length:   uint32(at.Length),
	}}
	return f, nil
}

// changeOf is what a watcher sees of a record.
func changeOf(r *CacheRecord, offset uint64) Change {
	c := Change{Op: r.Op, Key: r.Key, Value: r.Value, Offset: offset, ExpiresAtMillis: r.ExpiresAtMillis}
	switch {
	case r.Carried:
		c.Version = r.Version
	case r.Op == Put:
		c.Version = offset
	}
	return c
}

// load reads the values to carry. What was overwritten meanwhile stays behind.
func (k *cacheKind) load(ctx context.Context, batch []carried) error {
	for i := range batch {
		b := &batch[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.entry.lapsed(k.core.nowMillis()) {
			continue
		}
		var item Item
		var found bool
		var err error
		b.value, item, found, err = k.core.read(b.value[:0], []byte(b.name), b.entry)
		if err != nil {
			return err
		}
		b.loaded = found && item.Version == b.entry.word
	}
	return nil
}

func (k *cacheKind) carry(o *op, from *carried, v view) bool {
	switch {
	case !v.present || v.entry.offset != from.entry.offset:
		return false // a newer write, committed or on its way
	case v.entry.lapsed(v.now):
		o.expire()
		return true
	case !from.loaded:
		return false
	}
	r := CacheRecord{
		Op: Put, ExpiresAtMillis: v.entry.expires, Carried: true, Version: v.entry.word,
		Key: o.key, Value: from.value,
	}
	o.block = sealBlock(r.Append(newBlock(carriedHeader + len(r.Key) + len(r.Value))))
	o.quiet = true
	o.after = v.state
	return true
}

// expire makes o the removal of a lapsed entry.
func (o *op) expire() { o.remove(Expired) }

func (o *op) remove(as Op) {
	r := CacheRecord{Op: as, Key: o.key}
	o.block = sealBlock(r.Append(newBlock(cacheHeader + len(r.Key))))
	o.quiet = false
	o.after = state{}
}
