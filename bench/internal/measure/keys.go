package measure

import "fmt"

// Keys is a set of cache keys of one length, spread over any hash.
type Keys []string

// keyLength is the length of every key in bytes.
const keyLength = 32

// NewKeys makes n keys.
func NewKeys(n int) Keys {
	keys := make(Keys, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("bench-key-%0*d", keyLength-len("bench-key-"), i)
	}
	return keys
}

// A Walk visits keys in an order that differs from worker to worker.
type Walk struct {
	keys Keys
	at   []padded
}

type padded struct {
	n uint32
	_ [124]byte // one worker's position shares no cache line with another's
}

// Walk starts a walk for each of several workers.
func (k Keys) Walk(workers int) *Walk {
	w := &Walk{keys: k, at: make([]padded, workers)}
	for i := range w.at {
		w.at[i].n = uint32(i) * 2654435761
	}
	return w
}

// Next is the worker's next key. Each worker has one caller.
func (w *Walk) Next(worker int) string {
	p := &w.at[worker]
	p.n = p.n*1664525 + 1013904223
	return w.keys[uint64(p.n)*uint64(len(w.keys))>>32]
}
