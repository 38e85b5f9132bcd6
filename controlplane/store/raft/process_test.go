package raft

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// writers create tenants through all processes until they are ended. A tenant
// whose creation failed, because the member died with it, is created again by
// another; that it exists then is an answer too.
type writers struct {
	work sync.WaitGroup
	stop chan struct{}
	next atomic.Int64 // tenants begun
	done atomic.Int64 // and acknowledged
}

func startWriters(f *fleet, n int) *writers {
	w := &writers{stop: make(chan struct{})}
	members := len(f.procs)
	for i := range n {
		w.work.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
					w.write(f, i, members)
				}
			}
		})
	}
	return w
}

// write creates the next tenant through one member, and the others after it.
func (w *writers) write(f *fleet, first, members int) {
	n := w.next.Add(1) - 1
	for try := 0; ; try++ {
		p := f.member(uint64((first+try)%members) + 1)
		if p == nil {
			continue
		}
		err := p.get(fmt.Sprintf("/create?n=%d", n), nil)
		if err == nil || try > 0 && strings.Contains(err.Error(), "already exists") {
			w.done.Add(1)
			return
		}
	}
}

func (w *writers) reach(t *testing.T, n int64) {
	t.Helper()
	eventually(t, "writes go on", func() bool { return w.done.Load() >= n })
}

// end lets every writer finish, and answers with how many tenants there are.
func (w *writers) end() int {
	close(w.stop)
	w.work.Wait()
	return int(w.next.Load())
}

func TestLeaderKilledUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	w := startWriters(f, 6)
	w.reach(t, 100)
	old := f.leader(0)
	f.kill(old)
	w.reach(t, w.done.Load()+100)
	f.start(old)
	w.reach(t, w.done.Load()+50)
	f.check(w.end())
}

// A leader that stands still for several elections still believes that it leads
// when it goes on. It must not acknowledge anything that the others do not have.
func TestLeaderFrozen(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	w := startWriters(f, 6)
	w.reach(t, 50)
	for range 2 {
		old := f.leader(0)
		f.procs[old].signal(t, syscall.SIGSTOP)
		next := f.leader(old)
		if next == old {
			t.Fatal("the frozen member answered")
		}
		// Nobody can be frozen out of its own writes: those through the frozen member
		// wait, the others go on.
		for range 20 {
			w.write(f, int(next)-1, 3)
		}
		f.procs[old].signal(t, syscall.SIGCONT)
		w.reach(t, w.done.Load()+50)
	}
	f.check(w.end())
}

// All members die at once, as when the power fails.
func TestAllKilledAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	w := startWriters(f, 6)
	w.reach(t, 300) // beyond a snapshot
	for _, p := range f.procs {
		p.signal(t, syscall.SIGKILL)
	}
	acknowledged := w.done.Load()
	for id := uint64(1); id <= 3; id++ {
		f.kill(id)
		f.start(id)
	}
	w.reach(t, acknowledged+20)
	f.check(w.end())
}
