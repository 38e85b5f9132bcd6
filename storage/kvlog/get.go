package kvlog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/felixlog/felix/storage/shardlog"
)

// Get returns what key holds; false when it is absent or lapsed. An error is
// never a miss: a value that cannot be read is *segment.CorruptionError,
// *[CorruptionError] or an error of the file system.
func (m *Map) Get(key []byte) (Item, bool, error) {
	_, item, found, err := m.GetAppend(nil, key)
	return item, found, err
}

// GetAppend is Get with the value appended to dst: Item.Value is that part of
// the slice returned. With room in dst it allocates nothing.
func (m *Map) GetAppend(dst, key []byte) ([]byte, Item, bool, error) {
	c := m.core
	if err := c.catchUp(); err != nil {
		return dst, Item{}, false, err
	}
	s, err := c.get(key)
	if err != nil || !s.live(c.nowMillis()) {
		return dst, Item{}, false, err
	}
	return c.read(dst, key, s.entry)
}

// GetSettled is Get after the writes of key staged before the call have ended:
// for a read that feeds a write on the same key.
func (m *Map) GetSettled(ctx context.Context, key []byte) (Item, bool, error) {
	settled := make(answered, 1)
	m.core.submit(&op{key: key, judge: judgeNothing, done: settled})
	select {
	case <-settled: // how they ended shows in what is read
		return m.Get(key)
	case <-ctx.Done():
		return Item{}, false, ctx.Err()
	}
}

func judgeNothing(*op, view) bool { return false }

// read reads the value of e, of key, without a lock. Compaction may trim the
// segment under it; then the entry has moved, or was overwritten or removed,
// and what the key holds now is read instead.
func (c *core) read(dst, key []byte, e entry) ([]byte, Item, bool, error) {
	for {
		out, item, err := c.readAt(dst, key, e)
		if err == nil {
			return out, item, true, nil
		}
		now, failed := c.get(key)
		switch {
		case failed != nil:
			return dst, Item{}, false, failed
		case !now.live(c.nowMillis()):
			return dst, Item{}, false, nil
		case now.entry.segment == e.segment && now.entry.position == e.position:
			return dst, Item{}, false, err
		}
		e = now.entry
	}
}

// readAt reads the record e points at: one lookup in the log, one positioned
// read, and the record has to be the one expected.
func (c *core) readAt(dst, key []byte, e entry) ([]byte, Item, error) {
	page, err := c.log.ReadAt(shardlog.Location{Segment: uint64(e.segment), Position: e.position, Length: int(e.length)})
	if err != nil {
		return dst, Item{}, err
	}
	defer page.Release()
	r, err := recordAt(page, e.offset)
	if err != nil {
		return dst, Item{}, err
	}
	version := e.offset
	if r.Carried {
		version = r.Version
	}
	if r.Op != Put || !bytes.Equal(r.Key, key) || version != e.word {
		return dst, Item{}, &CorruptionError{e.offset, "not the record the index expects"}
	}
	start := len(dst)
	dst = append(dst, r.Value...)
	return dst, Item{Value: dst[start:len(dst):len(dst)], Version: e.word, ExpiresAtMillis: e.expires}, nil
}

// recordAt is the record at offset in a page of one batch.
func recordAt(p *shardlog.Page, offset uint64) (CacheRecord, error) {
	for i := range p.Batches {
		for at, rec := range p.Batches[i].All() {
			if at != offset {
				continue
			}
			r, err := ParseCacheRecord(rec)
			if err != nil {
				return CacheRecord{}, &CorruptionError{offset, err.Error()}
			}
			return r, nil
		}
	}
	return CacheRecord{}, &CorruptionError{offset, fmt.Sprintf("no such record among %d batches read", len(p.Batches))}
}
