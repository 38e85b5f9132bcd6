//go:build !race

package shardlog

import (
	"testing"
)

// TestAppendAllocatesNothing counts the steady state of an append, its round and
// its answer, in every mode.
func TestAppendAllocatesNothing(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		f := newFixture(t, Options{Fsync: mode, SegmentBytes: 1 << 30})
		e := numbered(0, 4, 256)
		e.Publisher = "somebody"
		done := make(chan struct{}, 1)
		signal := completionFunc(func(Appended, error) { done <- struct{}{} })
		calls := map[string]func(){
			"append": func() {
				if _, err := f.log.Append(e, signal); err != nil {
					t.Fatal(err)
				}
				<-done
			},
			"append and wait": func() {
				if _, err := f.log.AppendWait(e); err != nil {
					t.Fatal(err)
				}
			},
		}
		for name, call := range calls {
			for range 100 {
				call()
			}
			// The memory file system and the index grow: less than one a call.
			if n := testing.AllocsPerRun(500, call); n > 1 {
				t.Errorf("%s, %s: %.2f allocations", mode, name, n)
			}
		}
	}
}

// TestReadAllocatesNothing counts pages in the steady state.
func TestReadAllocatesNothing(t *testing.T) {
	f := newFixture(t, Options{})
	f.fill(100, 4, 256)
	last := f.append(numbered(400, 4, 256))
	calls := map[string]func() (*Page, error){
		"read":    func() (*Page, error) { return f.log.Read(50, 64<<10, 0) },
		"read at": func() (*Page, error) { return f.log.ReadAt(last.Where) },
	}
	for name, call := range calls {
		read := func() {
			page, err := call()
			if err != nil {
				t.Fatal(err)
			}
			page.Release()
		}
		read()
		if n := testing.AllocsPerRun(500, read); n > 0 {
			t.Errorf("%s: %.2f allocations", name, n)
		}
	}
}
