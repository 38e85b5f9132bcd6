package stream

import (
	"math/rand/v2"
	"testing"
)

func TestBufferClasses(t *testing.T) {
	last := -1
	for n := 0; n <= 1<<16; n++ {
		class := classOf(n)
		size := classSize(class)
		if size < n || class > 0 && classSize(class-1) >= n {
			t.Fatalf("%d bytes got class %d of %d", n, class, size)
		}
		if n > 1<<minClassBits && float64(size-n) > 0.25*float64(n) {
			t.Fatalf("%d bytes got %d", n, size)
		}
		if class < last {
			t.Fatalf("class of %d is below that of %d", n, n-1)
		}
		last = class
	}
	if got := classOf(1 << maxClassBits); got != classCount-1 || classSize(got) != 1<<maxClassBits {
		t.Fatalf("the largest class is %d of %d", got, classCount)
	}
	if classOf(1<<maxClassBits+1) != -1 {
		t.Fatal("a larger buffer is pooled")
	}
}

func TestPoolStaysWithinItsBound(t *testing.T) {
	const bound = 64 << 10
	p := newPool(bound)
	var out []*buffer
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		if rng.IntN(2) == 0 {
			out = append(out, p.get(rng.IntN(40<<10)))
		} else if len(out) > 0 {
			i := rng.IntN(len(out))
			p.put(out[i])
			out = append(out[:i], out[i+1:]...)
		}
		var idle int64
		for class, free := range p.free {
			for _, b := range free {
				if cap(b.bytes) != classSize(class) {
					t.Fatalf("a buffer of %d in the class of %d", cap(b.bytes), classSize(class))
				}
				idle += int64(cap(b.bytes))
			}
		}
		if idle != p.idle || idle > bound {
			t.Fatalf("idle %d, counted %d, bound %d", idle, p.idle, bound)
		}
	}
	p.put(p.get(bound + 1))
	if p.idle > bound {
		t.Fatal("a buffer larger than the bound was kept")
	}
}

// A pool full of one size makes room for the size in use.
func TestPoolFollowsTheSizesInUse(t *testing.T) {
	p := newPool(8 << 10)
	var out []*buffer
	for range 32 {
		out = append(out, p.get(256))
	}
	for _, b := range out {
		p.put(b)
	}
	b := p.get(4 << 10)
	p.put(b)
	if got := p.get(4 << 10); got != b {
		t.Fatal("the buffer in use was not kept")
	}
}
