package fstest

const (
	pageSize   = 4096
	sectorSize = 512
)

// file is the content of a file, as programs see it and as it is on the disk.
type file struct {
	size    int64
	pages   []*page
	durable int64 // size at the last sync

	// What the size passed through since the last sync.
	least, most int64
	dirty       []int // pages that may differ from the disk
}

// page is 4 KiB of a file.
type page struct {
	now   [pageSize]byte
	disk  [pageSize]byte // at the last sync, or as written back since
	dirty bool
	// The bytes that may differ: from lo up to hi.
	lo, hi int
}

// page gives the i-th page, made if missing.
func (f *file) page(i int) *page {
	for len(f.pages) <= i {
		f.pages = append(f.pages, nil)
	}
	if f.pages[i] == nil {
		f.pages[i] = &page{}
	}
	return f.pages[i]
}

// touch notes that bytes lo to hi of page i are about to change.
func (f *file) touch(i, lo, hi int) *page {
	p := f.page(i)
	if !p.dirty {
		p.dirty, p.lo, p.hi = true, lo, hi
		f.dirty = append(f.dirty, i)
		return p
	}
	p.lo, p.hi = min(p.lo, lo), max(p.hi, hi)
	return p
}

// writeAt writes b. writeback is asked for each page that changes again before
// it was synced, whether the disk has what was there so far.
func (f *file) writeAt(b []byte, off int64, writeback func() bool) {
	end := off + int64(len(b))
	for len(b) > 0 {
		i, at := int(off/pageSize), int(off%pageSize)
		n := min(len(b), pageSize-at)
		if p := f.page(i); p.dirty && writeback() {
			p.writeBack()
		}
		copy(f.touch(i, at, at+n).now[at:], b[:n])
		b, off = b[n:], off+int64(n)
	}
	if end > f.size {
		f.setSize(end)
	}
}

// writeBack puts the page on the disk unasked. It stays dirty: nobody promised.
func (p *page) writeBack() { copy(p.disk[p.lo:p.hi], p.now[p.lo:p.hi]) }

func (f *file) readAt(b []byte, off int64) int {
	total := 0
	for len(b) > 0 && off < f.size {
		i, at := int(off/pageSize), int(off%pageSize)
		n := int(min(int64(len(b)), int64(pageSize-at), f.size-off))
		if i < len(f.pages) && f.pages[i] != nil {
			copy(b[:n], f.pages[i].now[at:])
		} else {
			clear(b[:n])
		}
		b, off, total = b[n:], off+int64(n), total+n
	}
	return total
}

// truncate sets the size; what is cut off reads as zeros if the file grows
// again.
func (f *file) truncate(size int64) {
	for i := int(size / pageSize); i < len(f.pages) && size < f.size; i++ {
		if f.pages[i] == nil {
			continue
		}
		at := 0
		if int64(i) == size/pageSize {
			at = int(size % pageSize)
		}
		clear(f.touch(i, at, pageSize).now[at:])
	}
	f.setSize(size)
}

func (f *file) setSize(size int64) {
	f.size = size
	f.least, f.most = min(f.least, size), max(f.most, size)
}

func (f *file) sync() {
	for _, i := range f.dirty {
		p := f.pages[i]
		p.writeBack()
		p.dirty = false
	}
	f.dirty = f.dirty[:0]
	f.durable, f.least, f.most = f.size, f.size, f.size
}

func (f *file) clone() *file {
	next := *f
	next.pages = make([]*page, len(f.pages))
	for i, p := range f.pages {
		if p != nil {
			copied := *p
			next.pages[i] = &copied
		}
	}
	next.dirty = append([]int(nil), f.dirty...)
	return &next
}
