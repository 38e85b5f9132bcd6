package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// A control serves one bidirectional stream: authenticate, then one request
// after the other, answers in one write a round (wire 8.1).
type control struct {
	c      *connection
	stream transport.Stream
	frames *frames
	out    *replies
	decode wire.Decoder
	shape  *answers // built with the first ledger
	acks   *ledger  // answers owed for publishes; nil before the first
	turns  *ledger  // answers owed in request order; nil before the first
	parked parking  // publishes without room
	polls  polls    // of groups, under way

	lastCache cacheRoute // of the last cache request: a get allocates nothing
	groups    groupRoutes

	offer     wire.Offer
	window    int // granted publish window; 0: answers in completion order
	principal *auth.Principal
	identity  *identity
	routes    routes
	rights    rights
}

func newControl(c *connection, st transport.Stream) *control {
	s := &control{
		c:      c,
		stream: st,
		frames: newFrames(st, c.srv),
		out:    newReplies(st, c.srv.cfg.ReplyWriteTimeout),
	}
	s.parked.init(s)
	s.polls.init(s)
	return s
}

// verdict is what handling a frame means for its stream.
type verdict int

const (
	goOn     verdict = iota
	finish           // answer what is owed, then end the stream
	finished         // the same after a request that was served and was the only one
)

func (s *control) serve(ctx context.Context) {
	defer s.stream.CancelRead(codeNone)
	leave, ok := s.c.enterPreauth(ctx)
	if !ok {
		s.stream.CancelWrite(codeNone)
		return
	}
	authenticated := s.authenticate(ctx)
	leave()
	if !authenticated {
		s.out.finish()
		return
	}
	defer s.c.forget(s.identity)
	stop := s.watchRights()
	defer stop()
	last := s.requests(ctx)
	s.settle(ctx)
	s.out.finish()
	if last == finished {
		s.linger()
	}
}

const (
	// lingerTime and lingerBytes bound what is still read of a client whose
	// stream is answered and ended.
	lingerTime  = time.Second
	lingerBytes = 64 << 10
)

// linger reads on until the client has ended its half, too. A client that
// sends its FIN behind a request may be about to; told to stop at that moment
// it could take the request for failed and repeat it.
func (s *control) linger() {
	if s.stream.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	var scrap [512]byte
	for read := 0; read < lingerBytes; {
		n, err := s.stream.Read(scrap[:])
		if err != nil {
			return
		}
		read += n
	}
}

// requests is the request loop; it says how the last request ended it.
func (s *control) requests(ctx context.Context) verdict {
	for {
		if !s.frames.Buffered() {
			if s.out.flush() != nil {
				return finish
			}
		}
		hdr, payload, err := s.frames.Next()
		if err != nil {
			s.logEnd(err)
			if !errors.Is(err, io.EOF) {
				s.polls.end(errAbandoned)
			}
			return finish
		}
		s.out.beginRound()
		s.c.srv.inflight.Add(1)
		v := s.handle(ctx, hdr, payload)
		s.c.srv.inflight.Add(-1)
		s.c.srv.served.Add(1)
		if v != goOn {
			s.polls.end(errAbandoned)
			return v
		}
	}
}

func (s *control) handle(ctx context.Context, hdr wire.Header, payload []byte) verdict {
	switch {
	case hdr.Flags == 0:
		return s.message(ctx, payload)
	case hdr.Unknown():
		s.refuse(invalidRequest("unsupported frame flags"))
		return goOn
	case hdr.Flags.Has(wire.FlagPublishBatch):
		return s.publishBinary(ctx, hdr.Flags, payload)
	default:
		// Known bits without a base that a client may send: not a message.
		return finish
	}
}

// settle waits for whatever is still owed an answer, so that a client that
// sent FIN after its last request gets every answer (wire 2.4).
func (s *control) settle(ctx context.Context) {
	_ = s.out.flush()
	s.polls.settle()
	s.parked.settle()
	for _, l := range []*ledger{s.acks, s.turns} {
		if l != nil {
			l.settle(ctx, s.c.conn.Context().Done())
			l.close()
		}
	}
}

func (s *control) logEnd(err error) {
	if errors.Is(err, io.EOF) {
		return
	}
	s.c.srv.log.Debug("stream ended", "peer", s.c.conn.RemoteAddr().String(), "stream", s.stream.StreamID(), "error", err)
}
