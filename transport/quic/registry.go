package quic

import (
	"sync"
)

// A registry holds the live connections of one socket, so that they can be
// closed with a word to the peer before the socket goes.
type registry struct {
	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

// add reports false once closeAll has begun: c is then the caller's to close.
func (r *registry) add(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.conns == nil {
		r.conns = make(map[*conn]struct{})
	}
	// It may have ended already, before anyone could remove it.
	if c.qc.Context().Err() == nil {
		r.conns[c] = struct{}{}
	}
	return true
}

func (r *registry) remove(c *conn) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// closeAll closes every connection and takes no more.
func (r *registry) closeAll(code uint64, reason string) {
	r.mu.Lock()
	r.closed = true
	conns := make([]*conn, 0, len(r.conns))
	for c := range r.conns {
		conns = append(conns, c)
	}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { c.Close(code, reason) })
	}
	wg.Wait()
}
