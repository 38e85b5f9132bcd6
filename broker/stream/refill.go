package stream

import "github.com/felixlog/felix/storage/shardlog"

// adopt takes over what the log holds: its tail, and its newest records for
// the ring. A ring that cannot be filled up to the tail stays empty, so that
// readers ask the log, which says what is wrong.
func (sh *Shard) adopt(log *shardlog.Log) {
	d := sh.durable
	tail := log.Tail()
	newest := ring{maxRecords: sh.ring.maxRecords, maxBytes: sh.ring.maxBytes}
	from := log.Base()
	if back := newest.reach(log, tail-from); back < tail-from {
		from = tail - back
	}
	visible, err := d.refill(log, &newest, from, tail)
	if err != nil {
		newest.clear()
		visible = tail
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.tail, d.visible = tail, visible
	if sh.end != nil {
		newest.clear()
		return
	}
	sh.ring = newest
}

// reach is how far back the ring is filled from a log of n records: as far as
// it can hold by count and, at the log's mean record size, by bytes; and one
// record more, because what lies before the first batch kept must be known.
func (r *ring) reach(log *shardlog.Log, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	mean := uint64(log.Bytes())/n + 1
	return min(uint64(r.maxRecords), uint64(r.maxBytes)/mean) + 1
}

// refill pushes the batches of [from, tail) and returns the offset after the
// last record among them.
func (d *durable) refill(log *shardlog.Log, r *ring, from, tail uint64) (visible uint64, err error) {
	p := pager{hub: d.shard.hub, log: log, next: from, end: tail}
	visible, base := from, log.Base()
	for p.next < p.end {
		pieces, err := p.page(nil)
		if err != nil {
			return 0, err
		}
		for _, piece := range pieces {
			e := piece.Envelope
			visible = e.end()
			if e.meta.BaseOffset-e.meta.Skipped <= from && from > base {
				e.release() // its Skipped may not be all of it
				continue
			}
			r.push(e)
		}
	}
	return visible, nil
}
