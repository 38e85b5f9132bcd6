package client

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// An eventSource is the event stream that a reader of records or of changes
// reads, as long as it has one. One goroutine reads; close may come from
// others.
type eventSource struct {
	c *Client

	mu     sync.Mutex
	es     *eventStream // nil while there is none
	cn     *conn        // that es came on
	closed bool
	watch  contextWatch
}

// A contextWatch interrupts reads of the current event stream when a context
// ends. It is set up once per context, not per read.
type contextWatch struct {
	done <-chan struct{}
	stop func() bool
	turn int
}

// current gives the event stream, nil while there is none.
func (s *eventSource) current() (*eventStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.es, nil
}

// frame reads the next frame.
func (s *eventSource) frame(ctx context.Context, es *eventStream) (wire.Header, []byte, error) {
	if !es.in.Buffered() {
		s.watchContext(ctx)
	}
	return es.in.Next()
}

// watchContext makes ctx's end interrupt reads.
func (s *eventSource) watchContext(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := &s.watch; w.done != ctx.Done() {
		s.unwatch()
		if w.done = ctx.Done(); w.done == nil {
			return
		}
		turn := w.turn
		w.stop = context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.watch.turn == turn && s.es != nil {
				s.es.st.SetReadDeadline(time.Unix(1, 0))
			}
		})
	}
}

// unwatch forgets the watched context; what it may still do comes too late.
// mu is held.
func (s *eventSource) unwatch() {
	w := &s.watch
	w.turn++
	if w.stop != nil {
		w.stop()
		if s.es != nil {
			s.es.st.SetReadDeadline(time.Time{})
		}
	}
	w.done, w.stop = nil, nil
}

// interrupted says that a read failed because its context ended: the stream
// is as it was.
func (s *eventSource) interrupted(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	s.mu.Lock()
	s.unwatch()
	s.mu.Unlock()
	return true
}

// adopt takes over a new event stream.
func (s *eventSource) adopt(cn *conn, es *eventStream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		es.st.CancelRead(0)
		return ErrClosed
	}
	s.es, s.cn = es, cn
	return nil
}

// drop lets go of the current event stream.
func (s *eventSource) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.es == nil {
		return
	}
	s.unwatch()
	s.es.st.CancelRead(0)
	s.cn.releaseSubscription()
	s.es, s.cn = nil, nil
}

// close ends the reader and unblocks whoever reads.
func (s *eventSource) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.drop()
}

func (s *eventSource) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.c.ctx.Err() != nil
}

// isLost says that the broker abandoned the stream, or that its connection
// is gone: a lost subscription, as opposed to a clean end (wire 2.4).
func isLost(err error) bool {
	var reset *transport.ResetError
	var closed *transport.CloseError
	return errors.As(err, &reset) || errors.As(err, &closed) || errors.Is(err, io.ErrUnexpectedEOF)
}

// A redirect is an answer that names the broker to ask instead.
type redirect struct {
	nodeID string
	addr   string // empty when it is not published
}

// redirected is the redirect that an answer is, nil when it is none.
func redirected(m wire.Message) *redirect {
	if m, ok := m.(*wire.NotLeader); ok {
		return &redirect{nodeID: m.NodeID, addr: m.Addr.Or("")}
	}
	return nil
}

// maxHops is how many redirects one attempt follows (wire 15).
const maxHops = 3

// atOwner does something at the broker that owns a shard: first at b, then
// wherever that redirects to, at most three times and never to the same
// broker twice (wire 15).
func (c *Client) atOwner(op string, b *broker, do func(*broker) (*redirect, error)) error {
	asked := []string{b.addr}
	for {
		to, err := do(b)
		if err != nil || to == nil {
			return err
		}
		if b, err = c.redirectedFrom(op, asked, to); err != nil {
			return err
		}
		asked = append(asked, b.addr)
	}
}

// redirectedFrom is the broker to ask next, or the refusal that a redirect is
// where it leads nowhere. asked are those asked so far, the redirecting one last.
func (c *Client) redirectedFrom(op string, asked []string, to *redirect) (*broker, error) {
	if to.addr != "" && !slices.Contains(asked, to.addr) && len(asked) <= maxHops {
		if b := c.endpoints.add(c, to.addr); b != nil {
			return b, nil
		}
	}
	return nil, &Error{
		Op: op, Code: CodeNotLeader, Retry: RetryElsewhere, Broker: asked[len(asked)-1],
		Message: "the shard is served by " + to.nodeID,
	}
}

// movedTo is where to ask first for a shard: where it moved, if that was
// said and can be reached, else where everything goes.
func (c *Client) movedTo(ctx context.Context, m *wire.ShardMoved) (*broker, error) {
	if m != nil && m.Addr.Or("") != "" {
		if b := c.endpoints.add(c, m.Addr.Value); b != nil {
			if _, _, err := b.connect(ctx); err == nil {
				return b, nil
			}
		}
	}
	return c.broker(ctx)
}
