package fstest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// crash chooses what a power loss leaves. Everything is visited in the order of
// names, so one seed gives one disk.
type crash struct {
	rng  *rand.Rand
	done map[node]node
}

func newCrash(rng *rand.Rand) *crash { return &crash{rng: rng, done: map[node]node{}} }

// luck draws the chance at which changes of one kind reached the disk. The
// extremes are likely: all or nothing are the states that hide best among
// independent choices.
func (c *crash) luck() float64 {
	return [...]float64{0, 0, 0.1, 0.5, 0.9, 1, 1}[c.rng.IntN(7)]
}

func (c *crash) happens(chance float64) bool { return c.rng.Float64() < chance }

func (c *crash) disk(root *dir) *dir { return c.dir(root) }

func (c *crash) dir(d *dir) *dir {
	names := maps.Clone(d.durable)
	luck := c.luck()
	for _, ch := range d.changes {
		if c.happens(luck) {
			ch.do(names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		names[name] = c.node(names[name])
	}
	next := settled(names)
	c.done[d] = next
	return next
}

func (c *crash) node(n node) node {
	if left, ok := c.done[n]; ok {
		return left
	}
	if d, ok := n.(*dir); ok {
		return c.dir(d)
	}
	f := n.(*file)
	left := c.file(f)
	c.done[n] = left
	return left
}

func (c *crash) file(f *file) *file {
	left := &file{size: c.size(f)}
	left.pages = make([]*page, (left.size+pageSize-1)/pageSize)
	luck := c.luck()
	for i := range min(len(f.pages), len(left.pages)) {
		if p := f.pages[i]; p != nil {
			left.pages[i] = c.page(p, int64(i)*pageSize, f.durable, luck)
		}
	}
	if cut := left.size % pageSize; cut > 0 {
		if p := left.pages[left.size/pageSize]; p != nil {
			clear(p.now[cut:])
			clear(p.disk[cut:])
		}
	}
	left.durable, left.least, left.most = left.size, left.size, left.size
	return left
}

// size chooses a size among those the file had or passed through.
func (c *crash) size(f *file) int64 {
	switch c.rng.IntN(4) {
	case 0:
		return f.durable
	case 1, 2:
		return f.size
	}
	return f.least + c.rng.Int64N(f.most-f.least+1)
}

// page chooses the content of the page at position at of its file.
func (c *crash) page(p *page, at, durable int64, luck float64) *page {
	left := &page{now: p.now}
	if p.dirty {
		torn := c.rng.IntN(4) == 0
		kept, zero := c.happens(luck), c.rng.IntN(4) == 0
		for s := 0; s < pageSize; s += sectorSize {
			if torn {
				kept, zero = c.happens(luck), c.rng.IntN(4) == 0
			}
			c.sector(left, p, s, kept, zero && at+int64(s) >= durable)
		}
	}
	left.disk = left.now
	return left
}

func (*crash) sector(left, p *page, s int, kept, zero bool) {
	switch {
	case kept:
	case zero:
		clear(left.now[s : s+sectorSize])
	default:
		copy(left.now[s:s+sectorSize], p.disk[s:])
	}
}
