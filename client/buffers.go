package client

import "sync"

// bufferClasses are the capacities that a bufferPool keeps, in bytes. Larger
// buffers are made for the occasion.
var bufferClasses = [...]int{1 << 10, 4 << 10, 16<<10 + 512, gatherBytes + 512, 256<<10 + 512}

// A bufferPool lends byte slices, by size class.
type bufferPool struct {
	classes [len(bufferClasses)]sync.Pool // of *[]byte
	headers sync.Pool                     // of *[]byte, emptied: put does not allocate
}

// get gives an empty slice with room for n bytes at least.
func (p *bufferPool) get(n int) []byte {
	for i, size := range bufferClasses {
		if n > size {
			continue
		}
		if b, ok := p.classes[i].Get().(*[]byte); ok {
			out := (*b)[:0]
			*b = nil
			p.headers.Put(b)
			return out
		}
		return make([]byte, 0, size)
	}
	return make([]byte, 0, n)
}

// put takes back a slice that get gave. Nobody may use it any longer.
func (p *bufferPool) put(b []byte) {
	for i, size := range bufferClasses {
		if cap(b) != size {
			continue
		}
		h, ok := p.headers.Get().(*[]byte)
		if !ok {
			h = new([]byte)
		}
		*h = b
		p.classes[i].Put(h)
		return
	}
}
