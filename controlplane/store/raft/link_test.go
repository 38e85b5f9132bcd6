package raft

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A link is a TCP proxy on the way from one member to another. It can be cut,
// which ends what runs over it, and frozen, which swallows everything without a
// word.
type link struct {
	ln net.Listener
	to func() string // where the other member is now

	mu     sync.Mutex
	cut    bool
	frozen chan struct{} // closed when it thaws; nil while it is not frozen
	conns  map[net.Conn]struct{}
	work   sync.WaitGroup
}

func newLink(t testing.TB, to func() string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{ln: ln, to: to, conns: make(map[net.Conn]struct{})}
	l.work.Go(l.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		l.setCut(true)
		l.setFrozen(false)
		l.work.Wait()
	})
	return l
}

func (l *link) addr() string { return l.ln.Addr().String() }

func (l *link) accept() {
	for {
		in, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.serve(in) })
	}
}

func (l *link) serve(in net.Conn) {
	defer func() { _ = in.Close() }()
	if !l.keep(in) {
		return
	}
	defer l.forget(in)
	out, err := net.Dial("tcp", l.to())
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !l.keep(out) {
		return
	}
	defer l.forget(out)
	var both sync.WaitGroup
	both.Go(func() { l.copy(out, in) })
	both.Go(func() { l.copy(in, out) })
	both.Wait()
}

func (l *link) copy(dst io.Writer, src net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			l.mu.Lock()
			frozen := l.frozen
			l.mu.Unlock()
			if frozen != nil {
				<-frozen
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = src.Close()
	if c, ok := dst.(net.Conn); ok {
		_ = c.Close()
	}
}

func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for c := range l.conns {
			_ = c.Close()
		}
	}
}

func (l *link) setFrozen(frozen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case frozen && l.frozen == nil:
		l.frozen = make(chan struct{})
	case !frozen && l.frozen != nil:
		close(l.frozen)
		l.frozen = nil
	}
}

// A slot remembers where a member listens.
type slot struct{ addr chan string }

func (s *slot) set(a string) {
	select {
	case <-s.addr:
	default:
	}
	s.addr <- a
}

func (s *slot) get() string {
	a := <-s.addr
	s.addr <- a
	return a
}

// newLinks makes the ways between n members, none of which runs yet.
func newLinks(t testing.TB, n uint64) (map[uint64]*slot, map[[2]uint64]*link) {
	addrs := make(map[uint64]*slot)
	for id := uint64(1); id <= n; id++ {
		addrs[id] = &slot{addr: make(chan string, 1)}
		addrs[id].set("127.0.0.1:1") // nobody is there
	}
	links := make(map[[2]uint64]*link)
	for from := uint64(1); from <= n; from++ {
		for to := uint64(1); to <= n; to++ {
			links[[2]uint64{from, to}] = newLink(t, addrs[to].get)
		}
	}
	return addrs, links
}
