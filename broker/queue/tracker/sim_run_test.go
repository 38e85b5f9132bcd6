package tracker

import (
	"math/rand/v2"
	"testing"

	"github.com/felixlog/felix/internal/soak"
)

// Claims, lapses, late settles, seeks, redrives, trims and crashes of several
// workers, in any order: after each step everything the tracker says is what the
// model says, and in the end nothing is left over (BR-28, BR-29).
func TestRandomLivesAgreeWithTheModel(t *testing.T) {
	for seed := range 300 * soak.Times() {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		ops := make([]byte, 30+rng.IntN(1000))
		for i := range ops {
			ops[i] = byte(rng.UintN(256))
		}
		runSim(t, ops)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzTracker(f *testing.F) {
	f.Add([]byte{3, 5, 20, 0, 0, 6, 100, 0, 6, 1, 2})
	f.Add([]byte("\x02\x02\x0a\x00\x01\x05\x10\x00\x18\xff\x00\x02\x05\x10\x00\x0d\x01\x00\x01\x00\x06\x01\x00"))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		ops := make([]byte, 300)
		for i := range ops {
			ops[i] = byte(rng.UintN(256))
		}
		f.Add(ops)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		ops = ops[:min(len(ops), 4096)]
		runSim(t, ops)
	})
}
