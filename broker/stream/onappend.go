package stream

import (
	"slices"
	"sync"
	"sync/atomic"
)

// listeners hear of batches that became readable. Nobody listening costs a
// batch one atomic load.
type listeners struct {
	// all is never modified, but replaced.
	all atomic.Pointer[[]*listener]
	mu  sync.Mutex // of those that replace it
}

type listener struct{ f func() }

// OnAppend calls f after every batch that became readable, one call at a time,
// until stop is called; a call that has begun may still run then. f runs in
// the shard's publish path: it must be short and must not block.
func (sh *Shard) OnAppend(f func()) (stop func()) {
	l := &listener{f}
	sh.listeners.replace(func(all []*listener) []*listener { return append(all, l) })
	return func() {
		sh.listeners.replace(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == l })
		})
	}
}

func (ls *listeners) replace(change func([]*listener) []*listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var all []*listener
	if now := ls.all.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = change(all); len(all) == 0 {
		ls.all.Store(nil)
		return
	}
	ls.all.Store(&all)
}

// appended tells them.
func (ls *listeners) appended() {
	all := ls.all.Load()
	if all == nil {
		return
	}
	for _, l := range *all {
		l.f()
	}
}
