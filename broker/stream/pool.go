package stream

import (
	"math/bits"
	"sync"
)

// Buffers come in sizes of four steps to the octave, so at most a fifth of one
// is unused. Larger blocks than the last class are left to the collector.
const (
	minClassBits = 8  // 256 B
	maxClassBits = 25 // 32 MiB
	classCount   = (maxClassBits-minClassBits)*4 + 1

	maxIdleEnvelopes = 4096
)

// A buffer is one block of memory that goes back to its class when done with.
type buffer struct {
	bytes []byte
	class int // -1: not pooled
}

// A pool keeps idle buffers and envelopes for reuse, within a bound in bytes.
// It is explicit rather than a sync.Pool so that the bound and the absence of
// allocations hold exactly.
type pool struct {
	mu        sync.Mutex
	maxIdle   int64
	idle      int64
	free      [classCount][]*buffer
	hand      int // class to take from next when room is needed
	envelopes []*Envelope
}

func newPool(maxIdle int64) *pool { return &pool{maxIdle: maxIdle} }

// classOf is the smallest class that holds n bytes, or -1.
func classOf(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	octave := bits.Len(uint(n-1)) - 1
	if octave >= maxClassBits {
		return -1
	}
	base := 1 << octave
	return (octave-minClassBits)*4 + (n-1-base)/(base/4) + 1
}

func classSize(class int) int {
	if class == 0 {
		return 1 << minClassBits
	}
	base := 1 << (minClassBits + (class-1)/4)
	return base + ((class-1)%4+1)*(base/4)
}

// get returns a buffer of length n; its contents are arbitrary.
func (p *pool) get(n int) *buffer {
	class := classOf(n)
	if class < 0 {
		return &buffer{bytes: make([]byte, n), class: -1}
	}
	p.mu.Lock()
	if free := p.free[class]; len(free) > 0 {
		b := p.pop(class)
		p.mu.Unlock()
		b.bytes = b.bytes[:n]
		return b
	}
	p.mu.Unlock()
	return &buffer{bytes: make([]byte, n, classSize(class)), class: class}
}

// pop takes an idle buffer out of a class that has one.
func (p *pool) pop(class int) *buffer {
	free := p.free[class]
	b := free[len(free)-1]
	free[len(free)-1] = nil
	p.free[class] = free[:len(free)-1]
	p.idle -= int64(classSize(class))
	return b
}

// put gives b back. When the idle bound is reached, buffers of other sizes
// make room: what was needed last is the best guess for what is needed next.
func (p *pool) put(b *buffer) {
	if b.class < 0 || int64(classSize(b.class)) > p.maxIdle {
		return
	}
	size := int64(classSize(b.class))
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.idle+size > p.maxIdle {
		for len(p.free[p.hand]) == 0 {
			p.hand = (p.hand + 1) % classCount
		}
		p.pop(p.hand)
		p.hand = (p.hand + 1) % classCount
	}
	p.free[b.class] = append(p.free[b.class], b)
	p.idle += size
}

func (p *pool) getEnvelope() *Envelope {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.envelopes)
	if n == 0 {
		return &Envelope{}
	}
	e := p.envelopes[n-1]
	p.envelopes[n-1] = nil
	p.envelopes = p.envelopes[:n-1]
	return e
}

func (p *pool) putEnvelope(e *Envelope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.envelopes) < maxIdleEnvelopes {
		p.envelopes = append(p.envelopes, e)
	}
}
