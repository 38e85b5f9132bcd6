package shardlog

import (
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// DefaultOpenSealed is how many sealed segments of a root are open at once.
const DefaultOpenSealed = 256

// Descriptors is what the logs of one root share: a bounded number of open
// sealed segments, and memory that is used again. Of the segments that nobody
// reads the least recently used is closed first; those being read are never
// closed, so that readers beyond the bound are the one way past it.
type Descriptors struct {
	rounds sync.Pool // of *round
	pages  sync.Pool // of *Page
	chunks [len(chunkSizes)]sync.Pool

	mu   sync.Mutex
	max  int
	open int    // sealed segments open now
	idle opened // head of the list of those not pinned, least recently used first
}

// NewDescriptors returns room for n open sealed segments; n below 1 is 1.
func NewDescriptors(n int) *Descriptors {
	d := &Descriptors{max: max(n, 1)}
	d.idle.next, d.idle.prev = &d.idle, &d.idle
	return d
}

// opened is an open segment. The lock of Descriptors guards all but entries.
type opened struct {
	file   fs.File
	pins   int
	sealed bool // counted against the bound
	gone   bool // the segment left the log: closed with the last pin
	owner  *seg
	gauge  *atomic.Int64

	next, prev *opened // in the idle list

	loading sync.Mutex
	entries []segment.IndexEntry // of a sealed segment
	loaded  bool
}

// pin opens a segment, or finds it open, and keeps it so until unpin.
func (d *Descriptors) pin(l *Log, s *seg) (*opened, error) {
	d.mu.Lock()
	if o := s.open; o != nil {
		d.use(o)
		d.mu.Unlock()
		return o, nil
	}
	d.mu.Unlock()
	file, err := l.fs.Open(s.path)
	if err != nil {
		return nil, err
	}
	o := &opened{file: file, pins: 1, sealed: true, owner: s, gauge: &l.metrics.OpenSealedSegments}
	d.mu.Lock()
	if other := s.open; other != nil { // somebody else was faster
		d.use(other)
		d.mu.Unlock()
		_ = file.Close() // only read from
		return other, nil
	}
	if s.dropped {
		o.gone = true
	} else {
		s.open = o
	}
	d.count(o, 1)
	closing := d.evict()
	d.mu.Unlock()
	closeAll(closing)
	return o, nil
}

// hold registers the writable file of a segment that becomes active, in place of
// the one it was read by as a sealed one. It stays pinned while it is active.
func (d *Descriptors) hold(l *Log, s *seg, file fs.File) *opened {
	o := &opened{file: file, pins: 1, owner: s, gauge: &l.metrics.OpenSealedSegments}
	d.mu.Lock()
	closing := d.detach(s)
	s.open = o
	d.mu.Unlock()
	closeAll(closing)
	return o
}

// seal takes what was an active segment under the bound. It stays pinned.
func (d *Descriptors) seal(s *seg) {
	o := s.held
	o.loading.Lock() // a reader finds the index with the segment or here
	o.entries, o.loaded = s.retire(), true
	o.loading.Unlock()
	d.mu.Lock()
	o.sealed = true
	d.count(o, 1)
	closing := d.evict()
	d.mu.Unlock()
	closeAll(closing)
}

// index is what seal took over.
func (o *opened) index() []segment.IndexEntry {
	o.loading.Lock()
	defer o.loading.Unlock()
	return o.entries
}

func (d *Descriptors) unpin(o *opened) {
	d.mu.Lock()
	o.pins--
	var closing *opened
	if o.pins == 0 {
		if o.gone {
			d.count(o, -1)
			closing = o
		} else {
			o.prev, o.next = d.idle.prev, &d.idle
			o.prev.next, o.next.prev = o, o
			closing = d.evict()
		}
	}
	d.mu.Unlock()
	closeAll(closing)
}

// drop forgets a segment that left the log. Those who read it keep it open.
func (d *Descriptors) drop(s *seg) {
	d.mu.Lock()
	s.dropped = true
	closing := d.detach(s)
	d.mu.Unlock()
	closeAll(closing)
}

// detach takes the open file from a segment, and returns it if nobody uses it.
func (d *Descriptors) detach(s *seg) *opened {
	o := s.open
	if o == nil {
		return nil
	}
	s.open = nil
	o.gone = true
	if o.pins > 0 {
		return nil
	}
	o.unlink()
	d.count(o, -1)
	return o
}

func (d *Descriptors) use(o *opened) {
	if o.pins == 0 {
		o.unlink()
	}
	o.pins++
}

func (d *Descriptors) count(o *opened, n int) {
	if o.sealed {
		d.open += n
		o.gauge.Add(int64(n))
	}
}

// evict takes idle segments out until the bound holds, and returns them as a
// list to close without the lock.
func (d *Descriptors) evict() *opened {
	var closing *opened
	for d.open > d.max && d.idle.next != &d.idle {
		o := d.idle.next
		o.unlink()
		o.owner.open = nil
		d.count(o, -1)
		o.next, closing = closing, o
	}
	return closing
}

func (o *opened) unlink() {
	o.prev.next, o.next.prev = o.next, o.prev
	o.next, o.prev = nil, nil
}

func closeAll(o *opened) {
	for ; o != nil; o = o.next {
		_ = o.file.Close() // all that was written to it is synced or refused
	}
}
