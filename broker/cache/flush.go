package cache

import "sync"

// A flushRound collects whom to tell when a round of commits is over.
type flushRound struct {
	mu          sync.Mutex
	told, spare []Flusher
}

// add remembers done until the round is over, if it wants to hear of it.
func (r *flushRound) add(done any) {
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

// over tells them, each once for a run of its completions.
func (r *flushRound) over() {
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
