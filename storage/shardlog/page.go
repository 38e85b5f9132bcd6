package shardlog

import "github.com/felixlog/felix/storage/segment"

// Page is what one read returned. Its batches are views of buffers that Release
// gives back: nothing of a page may be used after that.
type Page struct {
	// Batches in the order of the log. The first may begin before the offset
	// asked for.
	Batches []segment.Batch
	// Where the batches lie, one for one.
	Where []Location
	// Next is the offset to read on from.
	Next uint64

	records int
	bytes   int
	chunks  []*chunk
	from    *Descriptors
}

// Release gives the page's memory back. A page that is not released is left to
// the garbage collector.
func (p *Page) Release() {
	d := p.from
	if d == nil {
		return
	}
	for i, c := range p.chunks {
		d.putChunk(c)
		p.chunks[i] = nil
	}
	clear(p.Batches)
	*p = Page{Batches: p.Batches[:0], Where: p.Where[:0], chunks: p.chunks[:0]}
	d.pages.Put(p)
}

func (d *Descriptors) getPage(next uint64) *Page {
	p, ok := d.pages.Get().(*Page)
	if !ok {
		p = new(Page)
	}
	p.from, p.Next = d, next
	return p
}

// chunk is a buffer that a read fills.
type chunk struct {
	buf   []byte
	class int // index in chunkSizes, -1 for a size of its own
}

// chunkSizes are the sizes kept for reuse, in bytes: read-ahead grows from the
// first to the last with what the caller asks for.
var chunkSizes = [...]int{4 << 10, 64 << 10, 256 << 10, 1 << 20}

// minReadAhead and maxReadAhead bound what is read at once; a batch larger than
// that is read alone.
const (
	minReadAhead = 64 << 10
	maxReadAhead = 1 << 20
)

func (d *Descriptors) getChunk(size int) *chunk {
	for class, n := range chunkSizes {
		if size > n {
			continue
		}
		c, ok := d.chunks[class].Get().(*chunk)
		if !ok {
			c = &chunk{buf: make([]byte, n), class: class}
		}
		c.buf = c.buf[:size]
		return c
	}
	return &chunk{buf: make([]byte, size), class: -1}
}

func (d *Descriptors) putChunk(c *chunk) {
	if c.class >= 0 {
		d.chunks[c.class].Put(c)
	}
}
