//go:build !race

package kvlog

import (
	"fmt"
	"runtime"
	"testing"
)

// A get into memory of the caller's allocates nothing. The least of some runs
// counts: a garbage collection between two gets empties the pools.
func TestGetAllocatesNothing(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	for i := range 100 {
		r.write(t, put(fmt.Sprint(i), "value"))
	}
	key, buf := []byte("42"), make([]byte, 0, 64)
	least := 1e9
	for range 5 {
		runtime.GC()
		least = min(least, testing.AllocsPerRun(100, func() {
			if _, _, found, err := r.m.GetAppend(buf, key); !found || err != nil {
				t.Fatal(found, err)
			}
		}))
	}
	if least > 0 {
		t.Errorf("%v allocations a get", least)
	}
}
