package postgres

import "sync"

// A watch tells who waits that this instance changed assignments.
type watch struct {
	mu   sync.Mutex
	next chan struct{} // nil until somebody waits
}

func (w *watch) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = make(chan struct{})
	}
	return w.next
}

func (w *watch) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
}

// AssignmentsChanged is closed by the next write of this instance. Those of
// other instances are seen by reading again (control plane 5.4).
func (s *Store) AssignmentsChanged() <-chan struct{} { return s.watch.wait() }
