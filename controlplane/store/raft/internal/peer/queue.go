package peer

import (
	"net"
	"sync/atomic"
)

// A queue hands the connections of one kind to whoever serves it. It is a
// net.Listener.
type queue struct {
	mux    *Mux
	conns  chan net.Conn
	room   chan struct{}
	opened atomic.Bool
	closed chan struct{}
	once   atomic.Bool
}

func newQueue(m *Mux) *queue {
	return &queue{mux: m, conns: make(chan net.Conn, backlog), room: make(chan struct{}, backlog), closed: make(chan struct{})}
}

func (q *queue) open() net.Listener {
	q.opened.Store(true)
	return q
}

// reserve keeps a place for one connection.
func (q *queue) reserve() (release func(), err error) {
	select {
	case <-q.closed:
		return nil, NotReady
	default:
	}
	if !q.opened.Load() {
		return nil, NotReady
	}
	select {
	case q.room <- struct{}{}:
		return func() { <-q.room }, nil
	default:
		return nil, TooMany
	}
}

// Accept waits for the next connection; net.ErrClosed after the end.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case <-q.closed:
		return nil, net.ErrClosed
	case <-q.mux.done:
		return nil, net.ErrClosed
	case c := <-q.conns:
		<-q.room
		return c, nil
	}
}

// Close ends this kind; the listener goes on with the other.
func (q *queue) Close() error {
	if q.once.CompareAndSwap(false, true) {
		close(q.closed)
	}
	return nil
}

// Addr is where the listener is.
func (q *queue) Addr() net.Addr { return q.mux.ln.Addr() }
