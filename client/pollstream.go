package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

const (
	// maxPolls bounds the polls under way at one broker; more wait. It is
	// half of what a connection carries (wire 2.2).
	maxPolls = 512
	// pollIdle is how long a stream for polls is kept that nobody uses.
	pollIdle = 15 * time.Second
)

// A pollPool lends streams for polls at one broker. A poll has a stream for
// itself, as it may wait; the next one uses it again.
type pollPool struct {
	b    *broker
	room chan struct{} // one token each poll

	mu       sync.Mutex
	idle     []*pollStream // the longest idle first
	sweeping bool          // a timer is set for the first of them
}

// A pollStream is an authenticated stream that carries one poll at a time.
type pollStream struct {
	cn    *conn
	sess  *session
	in    wire.Decoder
	used  bool // not the first poll
	since time.Time
}

func newPollPool(b *broker) *pollPool {
	return &pollPool{b: b, room: make(chan struct{}, maxPolls)}
}

// take gives a stream of the connection in use. It is given back by put, end
// or drop.
func (p *pollPool) take(ctx context.Context) (*pollStream, error) {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return nil, ctxError(opPoll, ctx, RetryNow)
	}
	s, err := p.find(ctx)
	if err != nil {
		<-p.room
	}
	return s, err
}

func (p *pollPool) find(ctx context.Context) (*pollStream, error) {
	cn, err := p.b.conn(ctx, roleGroup, 0)
	if err != nil {
		return nil, err
	}
	if s := p.takeIdle(cn); s != nil {
		return s, nil
	}
	ctx, cancel := within(ctx, p.b.c.cfg.dialTimeout)
	defer cancel()
	sess, err := cn.session(ctx)
	if err != nil {
		return nil, err
	}
	return &pollStream{cn: cn, sess: sess}, nil
}

// takeIdle gives the stream used last; nil when there is none on cn. Those of
// other connections went with them.
func (p *pollPool) takeIdle(cn *conn) *pollStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		s := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		if s.cn == cn {
			return s
		}
		s.sess.cancel()
	}
	return nil
}

// put takes back a stream that can carry another poll.
func (p *pollPool) put(s *pollStream) {
	s.used, s.since = true, time.Now()
	p.mu.Lock()
	p.idle = append(p.idle, s)
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(pollIdle, p.sweep)
	}
	p.mu.Unlock()
	<-p.room
}

// end takes back a stream that was answered and carries no more polls.
func (p *pollPool) end(s *pollStream) {
	p.finish(s)
	<-p.room
}

// drop takes back a stream that failed, or whose poll nobody waits for: the
// broker learns that it need not answer.
func (p *pollPool) drop(s *pollStream) {
	s.sess.cancel()
	<-p.room
}

func (p *pollPool) finish(s *pollStream) {
	s.sess.endRequest()
	if !p.b.c.spawn(s.sess.finish) {
		s.sess.cancel()
	}
}

// sweep ends the streams that have been idle for long.
func (p *pollPool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= pollIdle {
		p.finish(p.idle[n])
		n++
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
	if p.sweeping = len(p.idle) > 0 && p.b.c.ctx.Err() == nil; p.sweeping {
		time.AfterFunc(pollIdle-time.Since(p.idle[0].since), p.sweep)
	}
}

// exchange sends a poll and reads the one frame that answers it, waiting for
// so long at most. An answer that is there when ctx ends is given all the
// same, since it may carry claims; interrupted then says that the stream is of
// no more use.
func (s *pollStream) exchange(ctx context.Context, request wire.Message, patience time.Duration) (m wire.Message, interrupted bool, err error) {
	c := s.cn.b.c
	ctx, cancel := within(ctx, patience)
	defer cancel()
	stop := interrupt(ctx, s.sess.st)
	buf := wire.AppendMessage(c.bufs.get(1<<10), request)
	_, err = s.sess.st.Write(buf)
	c.bufs.put(buf)
	class := RetryUnknown
	if err != nil && s.used {
		class = RetryNow // the broker closed it meanwhile
	}
	if err == nil {
		m, err = s.read()
	}
	interrupted = stop()
	switch {
	case err == nil:
		return m, interrupted, nil
	case interrupted:
		return nil, true, ctxError(opPoll, ctx, RetryUnknown)
	}
	return nil, false, lost(opPoll, s.cn.b.addr, class, c.cause(err))
}

// read reads the answer, which is the decoder's until the next one.
func (s *pollStream) read() (wire.Message, error) {
	h, payload, err := s.sess.in.Next()
	if err != nil {
		return nil, err
	}
	if h.Flags != 0 {
		return nil, fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))
	}
	return s.in.Decode(payload)
}
