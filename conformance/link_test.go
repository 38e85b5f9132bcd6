package conformance

import (
	"net"
	"sync"
	"testing"
)

// A linkMode is how a link treats datagrams.
type linkMode int

const (
	linkPass  linkMode = iota
	linkDrop           // nothing gets through
	linkStall          // everything waits and is delivered in order later
)

// A link is a UDP relay in front of a node that can be broken.
type link struct {
	front *net.UDPConn
	node  *net.UDPAddr
	done  sync.WaitGroup

	mu     sync.Mutex
	mode   linkMode
	flows  map[string]*flow
	held   []func()
	sizes  []int // of the first datagrams, the node's negative
	closed bool
}

// A flow is one client socket's way through the link.
type flow struct {
	client *net.UDPAddr
	back   *net.UDPConn
	dead   bool
}

func newLink(t *testing.T, node string) *link {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", node)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	l := &link{front: front, node: to, flows: make(map[string]*flow)}
	l.done.Go(l.relayOut)
	t.Cleanup(l.close)
	return l
}

// addr is where clients dial.
func (l *link) addr() string { return l.front.LocalAddr().String() }

// firstExchange are the sizes of the first datagrams in order of arrival,
// those of the node negative.
func (l *link) firstExchange() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int(nil), l.sizes...)
}

// note records the size of a datagram, if it is one of the first.
func (l *link) note(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sizes) < 8 {
		l.sizes = append(l.sizes, size)
	}
}

// set changes the treatment of everything from now on. Leaving linkStall
// delivers what was held.
func (l *link) set(m linkMode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mode = m
	if m != linkStall {
		for _, deliver := range l.held {
			deliver()
		}
		l.held = nil
	}
}

// reset kills the flows there are: nothing gets through on them ever again,
// while new ones work.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.flows {
		f.dead = true
	}
}

func (l *link) relayOut() {
	buf := make([]byte, 65536)
	for {
		n, from, err := l.front.ReadFromUDP(buf)
		if err != nil {
			return
		}
		f := l.flowOf(from)
		if f == nil {
			continue
		}
		packet := append([]byte(nil), buf[:n]...)
		l.note(n)
		l.treat(f, func() { f.back.Write(packet) })
	}
}

func (l *link) flowOf(from *net.UDPAddr) *flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flows[from.String()]; f != nil {
		return f
	}
	if l.closed {
		return nil
	}
	back, err := net.DialUDP("udp", nil, l.node)
	if err != nil {
		return nil
	}
	f := &flow{client: from, back: back}
	l.flows[from.String()] = f
	l.done.Go(func() { l.relayBack(f) })
	return f
}

func (l *link) relayBack(f *flow) {
	buf := make([]byte, 65536)
	for {
		n, err := f.back.Read(buf)
		if err != nil {
			l.mu.Lock()
			closed := l.closed
			l.mu.Unlock()
			if closed {
				return
			}
			continue // the node is away: its port is unreachable for now
		}
		packet := append([]byte(nil), buf[:n]...)
		l.note(-n)
		l.treat(f, func() { l.front.WriteToUDP(packet, f.client) })
	}
}

// treat delivers, holds or drops one datagram.
func (l *link) treat(f *flow, deliver func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.dead || l.mode == linkDrop:
	case l.mode == linkStall:
		l.held = append(l.held, deliver)
	default:
		deliver()
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	for _, f := range l.flows {
		f.back.Close()
	}
	l.mu.Unlock()
	l.front.Close()
	l.done.Wait()
}
