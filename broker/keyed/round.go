package keyed

import "sync"

// A Flusher among the completions that a log's committer calls is told when
// the round of commits is over, once each round, so that the answers of a
// round can leave together. Flusher values are compared with ==.
type Flusher interface {
	Flush()
}

// A Round collects whom to tell when a round of commits is over.
type Round struct {
	mu          sync.Mutex
	told, spare []Flusher
}

// Add remembers done until the round is over, if it is a [Flusher].
func (r *Round) Add(done any) {
	f, ok := done.(Flusher)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.told); n == 0 || r.told[n-1] != f {
		r.told = append(r.told, f)
	}
}

// Over tells them, each once for a run of its completions.
func (r *Round) Over() {
	r.mu.Lock()
	told := r.told
	r.told, r.spare = r.spare[:0], nil
	r.mu.Unlock()
	for _, f := range told {
		f.Flush()
	}
	clear(told)
	r.mu.Lock()
	r.spare = told
	r.mu.Unlock()
}
