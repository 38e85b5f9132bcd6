package queue

import (
	"testing"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// What was acknowledged up to a gap is behind the cursor after a power loss.
func TestRestartFindsTheCursor(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{})
	sh := n.stream("s")
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.takes(r, 6, "0 1 2 3 4 5")
	n.acked(r, 0, 1, 3, 2, 5)
	if i := n.describe(r); !i.HasCommitted || i.Committed != 4 || i.InFlight != 1 || i.Owed != 0 || i.Tail != 10 || i.HighWater != 6 {
		t.Fatalf("%+v", i)
	}
	n.again(mem.Crash(1))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); !i.HasCommitted || i.Committed != 4 {
		t.Fatalf("%+v", i)
	}
	n.takes(r, 10, "4x2 5x2 6 7 8 9")
}
