package pgtest

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// A Proxy is a way to a server that a test can silence or cut.
type Proxy struct {
	target   string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	pass  chan struct{} // closed while bytes pass
	cut   bool
	conns map[net.Conn]struct{}
	done  bool
}

// NewProxy puts a proxy before the server of a URL and returns the URL through
// it. It ends with the test.
func NewProxy(t testing.TB, through string) (p *Proxy, proxied string) {
	t.Helper()
	u, err := url.Parse(through)
	if err != nil {
		t.Fatal("pgtest: the URL does not parse")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	p = &Proxy{target: u.Host, listener: l, pass: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(p.pass)
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	u.Host = l.Addr().String()
	return p, u.String()
}

// Silence lets no byte through, either way, on old connections and new ones,
// and breaks none: the peer hears nothing, not even an end.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.pass:
		p.pass = make(chan struct{})
	default: // silent already
	}
}

// Cut breaks all connections and every new one.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.Close()
	}
}

// Heal undoes Silence and Cut. What was held back arrives.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	p.open()
}

// open lets bytes through; p.mu is held.
func (p *Proxy) open() {
	select {
	case <-p.pass:
	default:
		close(p.pass)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		c.Close()
	}
	p.open()
	p.mu.Unlock()
	p.wait.Wait()
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wait.Go(func() { p.serve(near) })
	}
}

func (p *Proxy) serve(near net.Conn) {
	defer near.Close()
	if !p.track(near) {
		return
	}
	defer p.forget(near)
	p.await()
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.track(far) {
		return
	}
	defer p.forget(far)
	var both sync.WaitGroup
	both.Go(func() { p.carry(far, near) })
	both.Go(func() { p.carry(near, far) })
	both.Wait()
}

// carry copies until either end is gone.
func (p *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		p.await()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return // io.EOF or a cut
		}
	}
}

// await returns while bytes pass.
func (p *Proxy) await() {
	p.mu.Lock()
	pass := p.pass
	p.mu.Unlock()
	<-pass
}

func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.done {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
