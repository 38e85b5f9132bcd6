package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Workload is what a connection is used for. A [Pool] keeps them apart, so
// that a flood of events does not queue before a cache reply.
type Workload uint8

// The workloads of a client (wire 2.2).
const (
	Event Workload = iota
	Cache
	Publish
	workloads
)

func (w Workload) String() string {
	switch w {
	case Event:
		return "event"
	case Cache:
		return "cache"
	case Publish:
		return "publish"
	}
	return fmt.Sprintf("workload %d", uint8(w))
}

// PoolSizes are how many connections a [Pool] keeps for each workload.
type PoolSizes struct{ Event, Cache, Publish int }

// MaxPoolSize bounds each of [PoolSizes].
const MaxPoolSize = 1024

// A DialFunc makes one connection for a workload. It ends when ctx does.
type DialFunc func(ctx context.Context, w Workload) (Conn, error)

// ErrPoolClosed is what a closed [Pool] answers. It is also the cause of the
// end of dials that were in progress.
var ErrPoolClosed = errors.New("connection pool is closed")

// A Pool hands out connections to one peer, those of a workload in turn. It
// dials a place when its turn comes first, and again when its connection has
// ended by the next turn. All methods are safe for concurrent use.
type Pool struct {
	dial DialFunc
	// ctx is the life of the pool and of its dials: one caller that gives up
	// must not take the connection from the others that wait for it.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	dialing sync.WaitGroup

	mu     sync.Mutex
	closed bool
	rings  [workloads]ring
}

// A ring is the places of one workload.
type ring struct {
	slots []slot
	turn  int
}

// A slot is a place for one connection. At most one dial is under way for it,
// shared by whoever waits.
type slot struct {
	conn    Conn
	pending *attempt
}

// An attempt is one dial; conn and err are set before done closes.
type attempt struct {
	done chan struct{}
	conn Conn
	err  error
}

// NewPool makes an empty pool. Sizes are 1 to [MaxPoolSize]; 0 means 1.
func NewPool(dial DialFunc, sizes PoolSizes) (*Pool, error) {
	p := &Pool{dial: dial}
	for w, n := range [workloads]int{Event: sizes.Event, Cache: sizes.Cache, Publish: sizes.Publish} {
		if n < 0 || n > MaxPoolSize {
			return nil, fmt.Errorf("pool of %d %v connections: want 1 to %d", n, Workload(w), MaxPoolSize)
		}
		p.rings[w].slots = make([]slot, max(n, 1))
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}

// Conn returns the workload's next connection, dialling it if its place is
// empty; others that come to the same place meanwhile share the dial. If that
// fails and another connection of the workload lives, that one is returned.
// ctx bounds the wait, not the dial.
func (p *Pool) Conn(ctx context.Context, w Workload) (Conn, error) {
	if w >= workloads {
		return nil, fmt.Errorf("pool has no %v", w)
	}
	conn, a, err := p.take(w)
	if conn != nil || err != nil {
		return conn, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.err == nil {
		return a.conn, nil
	}
	if other := p.anyLive(w); other != nil {
		return other, nil
	}
	return nil, a.err
}

// take gives the next place's connection, or the attempt to wait for.
func (p *Pool) take(w Workload) (Conn, *attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrPoolClosed
	}
	r := &p.rings[w]
	s := &r.slots[r.turn]
	r.turn = (r.turn + 1) % len(r.slots)
	if live(s.conn) {
		return s.conn, nil, nil
	}
	if s.pending == nil {
		s.conn = nil
		s.pending = &attempt{done: make(chan struct{})}
		p.dialing.Add(1)
		go p.fill(s, s.pending, w)
	}
	return nil, s.pending, nil
}

// fill makes the attempt and puts its outcome in place.
func (p *Pool) fill(s *slot, a *attempt, w Workload) {
	defer p.dialing.Done()
	conn, err := p.dial(p.ctx, w)
	if err == nil && conn == nil {
		err = errors.New("dial returned no connection")
	}
	p.mu.Lock()
	late := err == nil && p.closed
	if late {
		err = ErrPoolClosed
	}
	if err == nil {
		s.conn, a.conn = conn, conn
	}
	a.err, s.pending = err, nil
	p.mu.Unlock()
	close(a.done)
	if late {
		conn.Close(0, "")
	}
}

func (p *Pool) anyLive(w Workload) Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rings[w].slots {
		if c := p.rings[w].slots[i].conn; live(c) {
			return c
		}
	}
	return nil
}

func live(c Conn) bool { return c != nil && c.Context().Err() == nil }

// Open is how many live connections a workload has.
func (p *Pool) Open(w Workload) int {
	if w >= workloads {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for i := range p.rings[w].slots {
		if live(p.rings[w].slots[i].conn) {
			n++
		}
	}
	return n
}

// Close closes every connection with code 0 and ends dials in progress. It
// may be called again.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	var conns []Conn
	for w := range p.rings {
		for i := range p.rings[w].slots {
			s := &p.rings[w].slots[i]
			if s.conn != nil {
				conns = append(conns, s.conn)
				s.conn = nil
			}
		}
	}
	p.mu.Unlock()
	p.cancel(ErrPoolClosed)
	p.dialing.Wait()
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close(0, ""))
	}
	return errors.Join(errs...)
}
