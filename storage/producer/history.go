package producer

// producer is one producer and its latest batches, oldest first in a ring.
type producer struct {
	id   uint64
	last uint64 // sequence of the newest batch

	ring  []batch
	start int
	count int

	older, newer *producer // in the order of newest batches
}

// batch is what is remembered of one batch.
type batch struct {
	first  uint64
	digest uint64
	count  uint32
}

func (b batch) end() uint64 { return b.first + uint64(b.count) }

func (p *producer) len() int { return p.count }

// at is the i-th batch, 0 being the oldest.
func (p *producer) at(i int) batch { return p.ring[(p.start+i)%len(p.ring)] }

// latest is the newest batch. A producer in a table has one.
func (p *producer) latest() batch { return p.at(p.count - 1) }

// push adds a batch; of more than limit the oldest goes. The ring grows with
// use: most producers are short-lived.
func (p *producer) push(b batch, limit int) {
	if p.count == len(p.ring) && p.count < limit {
		p.grow(min(limit, max(4, 2*len(p.ring))))
	}
	if p.count == len(p.ring) {
		p.start = (p.start + 1) % len(p.ring)
		p.count--
	}
	p.ring[(p.start+p.count)%len(p.ring)] = b
	p.count++
}

func (p *producer) grow(size int) {
	ring := make([]batch, size)
	for i := range p.count {
		ring[i] = p.at(i)
	}
	p.ring, p.start = ring, 0
}

func (p *producer) clear() { p.start, p.count = 0, 0 }

// dropFrom forgets the newest batches, those that end past tail.
func (p *producer) dropFrom(tail uint64) {
	for p.count > 0 && p.latest().end() > tail {
		p.count--
		p.last--
	}
}

// dropBelow forgets the oldest batches, those that begin below base.
func (p *producer) dropBelow(base uint64) {
	for p.count > 0 && p.at(0).first < base {
		p.start = (p.start + 1) % len(p.ring)
		p.count--
	}
}
