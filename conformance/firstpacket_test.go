package conformance

import (
	"testing"

	"github.com/felixlog/felix/felixtest"
)

// TestClientFirstDatagram: the published client's first datagram is larger than
// 1452 bytes where the route allows it, as its hello holds a post-quantum key
// share. A node that drops it costs every connect a second, the client's
// patience before it sends again in smaller pieces.
func TestClientFirstDatagram(t *testing.T) {
	n := felixtest.Start(t)
	d := startDriver(t)
	l := newLink(t, n.Addr())
	if err := d.connect("c", l.addr(), n.CAFile(), map[string]any{"token": n.Token()}); err != nil {
		t.Fatal(err)
	}
	first := l.firstExchange()
	if len(first) < 2 || first[1] >= 0 {
		t.Errorf("datagrams, the node's negative: %v; the node did not answer the first", first)
	}
}
