package transport_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// A fakeConn lives until it is closed.
type fakeConn struct {
	transport.Conn
	ctx    context.Context
	cancel context.CancelFunc
	closes atomic.Int32
}

func newFakeConn() *fakeConn {
	c := &fakeConn{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *fakeConn) Context() context.Context { return c.ctx }

func (c *fakeConn) Close(uint64, string) error {
	c.closes.Add(1)
	c.cancel()
	return nil
}

// A fakePeer answers dials, when and as the test says.
type fakePeer struct {
	mu    sync.Mutex
	dials map[transport.Workload]int
	conns []*fakeConn
	err   error
	// gate, if set, holds dials up until it is closed.
	gate chan struct{}
}

func (p *fakePeer) dial(ctx context.Context, w transport.Workload) (transport.Conn, error) {
	p.mu.Lock()
	if p.dials == nil {
		p.dials = make(map[transport.Workload]int)
	}
	p.dials[w]++
	gate, err := p.gate, p.err
	p.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	c := newFakeConn()
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	return c, nil
}

func (p *fakePeer) dialled(w transport.Workload) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials[w]
}

func (p *fakePeer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func newPool(t *testing.T, dial transport.DialFunc, sizes transport.PoolSizes) *transport.Pool {
	t.Helper()
	p, err := transport.NewPool(dial, sizes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func get(t *testing.T, p *transport.Pool, w transport.Workload) transport.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := p.Conn(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not come about: %s", what)
		}
	}
}

func TestPoolTakesTurns(t *testing.T) {
	var peer fakePeer
	p := newPool(t, peer.dial, transport.PoolSizes{Event: 3, Publish: 2})
	for w, size := range map[transport.Workload]int{transport.Event: 3, transport.Publish: 2, transport.Cache: 1} {
		if n := peer.dialled(w); n != 0 {
			t.Errorf("%v: %d dials before anyone asked", w, n)
		}
		var first []transport.Conn
		for i := range 4 * size {
			c := get(t, p, w)
			if i < size {
				first = append(first, c)
				if p.Open(w) != i+1 {
					t.Errorf("%v: %d open after %d turns", w, p.Open(w), i+1)
				}
			} else if c != first[i%size] {
				t.Errorf("%v: turn %d is out of order", w, i)
			}
		}
		if n := peer.dialled(w); n != size {
			t.Errorf("%v: %d dials for %d places", w, n, size)
		}
	}
}

// A noticedContext counts who begins to wait for its end.
type noticedContext struct {
	context.Context
	asked *atomic.Int32
}

func (c *noticedContext) Done() <-chan struct{} {
	c.asked.Add(1)
	return c.Context.Done()
}

// Those who come to one place while it is being dialled wait for the same
// dial; one who gives up does not spoil it for the others.
func TestPoolSharesDials(t *testing.T) {
	peer := fakePeer{gate: make(chan struct{})}
	p := newPool(t, peer.dial, transport.PoolSizes{Cache: 1})
	impatient, giveUp := context.WithCancel(context.Background())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := p.Conn(impatient, transport.Cache)
		gaveUp <- err
	}()
	eventually(t, "the dial has begun", func() bool { return peer.dialled(transport.Cache) == 1 })
	got := make(chan transport.Conn, 10)
	var waiting sync.WaitGroup
	var arrived atomic.Int32
	for range cap(got) {
		waiting.Go(func() {
			c, err := p.Conn(&noticedContext{Context: t.Context(), asked: &arrived}, transport.Cache)
			if err != nil {
				t.Error(err)
			}
			got <- c
		})
	}
	eventually(t, "all wait", func() bool { return int(arrived.Load()) == cap(got) })
	giveUp()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("one who gave up got %v", err)
	}
	close(peer.gate)
	waiting.Wait()
	close(got)
	for c := range got {
		if c != transport.Conn(peer.conns[0]) {
			t.Error("someone got another connection")
		}
	}
	if n := peer.dialled(transport.Cache); n != 1 {
		t.Errorf("%d dials for one place", n)
	}
}

func TestPoolReplacesTheDead(t *testing.T) {
	var peer fakePeer
	p := newPool(t, peer.dial, transport.PoolSizes{Publish: 2})
	a, b := get(t, p, transport.Publish), get(t, p, transport.Publish)
	a.Close(0, "")
	if n := p.Open(transport.Publish); n != 1 {
		t.Errorf("%d are open, want 1", n)
	}
	if n := peer.dialled(transport.Publish); n != 2 {
		t.Errorf("%d dials before the next use", n)
	}
	c := get(t, p, transport.Publish)
	if c == a || c == b {
		t.Error("the dead one's turn brought no new connection")
	}
	if get(t, p, transport.Publish) != b || get(t, p, transport.Publish) != c {
		t.Error("the order is lost")
	}
	if n := peer.dialled(transport.Publish); n != 3 {
		t.Errorf("%d dials, want 3", n)
	}
}

// While a peer turns dials away, living connections serve; when none lives,
// the error is the dial's, and the next use tries again.
func TestPoolWhenDialsFail(t *testing.T) {
	var peer fakePeer
	p := newPool(t, peer.dial, transport.PoolSizes{Event: 2, Cache: 1})
	a := get(t, p, transport.Event)
	refused := errors.New("refused")
	peer.fail(refused)
	for range 4 {
		if get(t, p, transport.Event) != a {
			t.Error("the living connection does not serve")
		}
	}
	if _, err := p.Conn(t.Context(), transport.Cache); !errors.Is(err, refused) {
		t.Errorf("got %v, want the dial's error", err)
	}
	a.Close(0, "")
	if _, err := p.Conn(t.Context(), transport.Event); !errors.Is(err, refused) {
		t.Errorf("got %v, want the dial's error", err)
	}
	peer.fail(nil)
	get(t, p, transport.Event)
	get(t, p, transport.Cache)
}

func TestPoolClose(t *testing.T) {
	peer := fakePeer{}
	p := newPool(t, peer.dial, transport.PoolSizes{Event: 2})
	get(t, p, transport.Event)
	peer.gate = make(chan struct{})
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Conn(context.Background(), transport.Publish)
		waiting <- err
	}()
	eventually(t, "a dial is in progress", func() bool { return peer.dialled(transport.Publish) == 1 })
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waiting; !errors.Is(err, transport.ErrPoolClosed) {
		t.Errorf("who waited for a dial got %v, want ErrPoolClosed", err)
	}
	if n := peer.conns[0].closes.Load(); n != 1 {
		t.Errorf("the connection was closed %d times", n)
	}
	if _, err := p.Conn(t.Context(), transport.Event); !errors.Is(err, transport.ErrPoolClosed) {
		t.Errorf("got %v, want ErrPoolClosed", err)
	}
	if p.Open(transport.Event) != 0 {
		t.Error("connections are open after Close")
	}
}

// A dial that succeeds after Close gives its connection up.
func TestPoolClosesLateConnections(t *testing.T) {
	late := newFakeConn()
	begun := make(chan struct{})
	p := newPool(t, func(ctx context.Context, _ transport.Workload) (transport.Conn, error) {
		close(begun)
		<-ctx.Done() // and succeeds all the same
		return late, nil
	}, transport.PoolSizes{})
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Conn(context.Background(), transport.Event)
		waiting <- err
	}()
	<-begun
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, transport.ErrPoolClosed) {
		t.Errorf("got %v, want ErrPoolClosed", err)
	}
	if late.closes.Load() != 1 {
		t.Error("the late connection stays open")
	}
}

func TestPoolBounds(t *testing.T) {
	for _, s := range []transport.PoolSizes{{Event: -1}, {Cache: transport.MaxPoolSize + 1}} {
		if _, err := transport.NewPool(nil, s); err == nil {
			t.Errorf("sizes %+v are accepted", s)
		}
	}
	p := newPool(t, func(context.Context, transport.Workload) (transport.Conn, error) { return nil, nil }, transport.PoolSizes{})
	if _, err := p.Conn(t.Context(), transport.Event); err == nil {
		t.Error("a dial without connection or error makes a connection")
	}
	if _, err := p.Conn(t.Context(), transport.Workload(99)); err == nil {
		t.Error("there is a workload 99")
	}
	if p.Open(transport.Workload(99)) != 0 {
		t.Error("workload 99 has connections")
	}
}

// The same over QUIC: places, windows by workload, a peer that goes away and
// comes back.
func TestPoolOverQUIC(t *testing.T) {
	ca, err := tlsconfig.NewDevCA(tlsconfig.DevOptions{})
	if err != nil {
		t.Fatal(err)
	}
	serverTLS, err := ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	clientTLS, err := ca.Client()
	if err != nil {
		t.Fatal(err)
	}
	l, err := quic.Listen("127.0.0.1:0", quic.ListenOptions{TLS: serverTLS})
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int32
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			if _, err := l.Accept(context.Background()); err != nil {
				return
			}
			accepted.Add(1)
		}
	})
	d, err := quic.NewDialer(quic.DialOptions{TLS: clientTLS})
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, func(ctx context.Context, w transport.Workload) (transport.Conn, error) {
		if w == transport.Publish {
			return d.Dial(ctx, l.Addr().String())
		}
		return d.DialWindows(ctx, l.Addr().String(), quic.EventWindows())
	}, transport.PoolSizes{Event: 2, Cache: 1, Publish: 2})

	seen := make(map[transport.Conn]bool)
	for range 3 {
		for _, w := range []transport.Workload{transport.Event, transport.Cache, transport.Publish} {
			seen[get(t, p, w)] = true
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d connections in use, want 5", len(seen))
	}
	eventually(t, "the peer has them all", func() bool { return accepted.Load() == 5 })

	for c := range seen {
		c.Close(0, "")
		break
	}
	eventually(t, "one is gone", func() bool {
		return p.Open(transport.Event)+p.Open(transport.Cache)+p.Open(transport.Publish) == 4
	})
	for range 2 {
		for _, w := range []transport.Workload{transport.Event, transport.Cache, transport.Publish} {
			get(t, p, w)
		}
	}
	eventually(t, "it is replaced, alone", func() bool { return accepted.Load() == 6 })

	if err := p.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the peer has none", func() bool { return l.Conns() == 0 })
	if err := errors.Join(d.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	serving.Wait()
}
