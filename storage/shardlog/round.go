package shardlog

import "time"

// item is one claim in a round: a batch, or what only waits its turn (a barrier,
// a duplicate), which has no bytes.
type item struct {
	done Completion
	app  Appended
	size int           // bytes of the batch in the round's buffer
	crc  uint32        // of the batch's header: what the next batch chains to
	at   time.Duration // when it was claimed, as Log.since tells it
}

// round is what gathers while the round before it is written.
type round struct {
	buf   []byte
	items []item
}

// maxGathered bounds the claims of one round: duplicates have no bytes that
// MaxPendingBytes could count.
const maxGathered = 1 << 16

// Buffers that grew past these bounds are left to the garbage collector, so that
// one burst does not hold memory for good.
const (
	maxKeptBytes = 4 << 20
	maxKeptItems = 1 << 13
)

func (d *Descriptors) getRound() *round {
	if r, ok := d.rounds.Get().(*round); ok {
		return r
	}
	return &round{buf: make([]byte, 0, 16<<10), items: make([]item, 0, 16)}
}

func (d *Descriptors) putRound(r *round) {
	if cap(r.buf) > maxKeptBytes || cap(r.items) > maxKeptItems {
		return
	}
	clear(r.items)
	r.items, r.buf = r.items[:0], r.buf[:0]
	d.rounds.Put(r)
}

// fail completes items with err. Unless something before them failed already,
// those before the first batch wait for nothing that failed, and succeed.
func fail(items []item, err error, failing bool) {
	for i := range items {
		it := &items[i]
		failing = failing || it.size > 0
		if failing {
			it.complete(err)
		} else {
			it.complete(nil)
		}
	}
}

func (it *item) complete(err error) {
	if it.done == nil {
		return
	}
	it.done.Committed(it.app, err)
}
