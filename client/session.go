package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// A session is a bidirectional stream that has authenticated.
type session struct {
	st    transport.Stream
	in    *wire.FrameReader
	caps  *capabilities
	token string
}

// cancel abandons both halves.
func (s *session) cancel() {
	s.st.CancelRead(0)
	s.st.CancelWrite(0)
}

// interrupt makes reads and writes of st fail once ctx ends. The returned
// function undoes that and says whether ctx had ended.
func interrupt(ctx context.Context, st transport.Stream) (stop func() bool) {
	undo := context.AfterFunc(ctx, func() {
		past := time.Unix(1, 0)
		st.SetReadDeadline(past)
		st.SetWriteDeadline(past)
	})
	return func() bool { return !undo() }
}

// open opens a stream and authenticates it. request, if any, is written
// behind the auth frame in one go, and with finish the sending half ends
// there: one round trip for the whole exchange.
//
// Every stream asks for a token. When the broker refuses it, another one is
// tried once, if there is another (wire 17.3).
func (cn *conn) open(ctx context.Context, request []byte, finish bool) (*session, error) {
	token, err := cn.b.c.token(ctx)
	if err != nil {
		return nil, err
	}
	s, err := cn.openWith(ctx, token, request, finish)
	if err == nil || !errors.Is(err, ErrUnauthenticated) || !cn.b.c.cfg.renewable {
		return s, err
	}
	another, tokenErr := cn.b.c.token(ctx)
	if tokenErr != nil {
		return nil, tokenErr
	}
	if another == token {
		return nil, err
	}
	return cn.openWith(ctx, another, request, finish)
}

// token asks the application for a token.
func (c *Client) token(ctx context.Context) (string, error) {
	token, err := c.cfg.token(ctx)
	switch {
	case err == nil:
		return token, nil
	case ctx.Err() != nil:
		return "", ctxError("authenticate", ctx, RetryNow)
	}
	return "", &Error{Op: "authenticate", Code: CodeUnauthenticated, Retry: RetryNever, Err: fmt.Errorf("token provider: %w", err)}
}

func (cn *conn) openWith(ctx context.Context, token string, request []byte, finish bool) (*session, error) {
	const op = "authenticate"
	st, err := cn.OpenStream(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctxError(op, ctx, RetryNow)
		}
		return nil, lost(op, cn.b.addr, RetryNow, cn.b.c.cause(err))
	}
	c := cn.b.c
	s := &session{st: st, in: wire.NewFrameReader(st, c.cfg.maxFrame), token: token}
	stop := interrupt(ctx, st)
	err = s.authenticate(&c.cfg, cn.b.addr, request, finish)
	if stop() {
		s.cancel()
		return nil, ctxError(op, ctx, RetryNow)
	}
	if err != nil {
		s.cancel()
		var e *Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, lost(op, cn.b.addr, RetryNow, c.cause(err))
	}
	cn.b.learn(s.caps)
	return s, nil
}

func (s *session) authenticate(cfg *config, addr string, request []byte, finish bool) error {
	out := make([]byte, 0, 512+len(s.token)+len(request))
	out = wire.AppendMessage(out, cfg.offer().Auth(cfg.tenant, s.token))
	if _, err := s.st.Write(append(out, request...)); err != nil {
		return err
	}
	if finish {
		s.endRequest()
	}
	m, err := s.message()
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *wire.AuthOK:
		s.caps = capabilitiesOf(m)
	case *wire.OK:
		s.caps = &capabilities{Offer: wire.LegacyOffer()}
	case *wire.Error:
		e := refused("authenticate", addr, m.Failure())
		if e.Code == "" {
			e.Code, e.Retry = CodeUnauthenticated, RetryNever // all that a broker without codes refuses here
		}
		return e
	default:
		return fmt.Errorf("unexpected %s in answer to auth", m.MessageType())
	}
	return nil
}

// message reads one JSON message.
func (s *session) message() (wire.Message, error) {
	h, payload, err := s.in.Next()
	if err != nil {
		return nil, err
	}
	if h.Flags != 0 {
		return nil, fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))
	}
	return wire.ParseMessage(payload)
}

// exchange sends one request on a stream of its own and reads the one frame
// that answers it (wire 8.2). Error and unsupported messages are returned as
// errors. Once the request was sent, other failures have the class given.
func (cn *conn) exchange(ctx context.Context, op, feature string, request wire.Message, sent RetryClass) (wire.Message, error) {
	ctx, cancel := within(ctx, cn.b.c.cfg.ackTimeout)
	defer cancel()
	s, err := cn.begin(ctx, wire.AppendMessage(nil, request))
	if err != nil {
		return nil, err
	}
	return cn.answer(ctx, s, op, feature, sent)
}

// submit is exchange for a request that changes something. Its stream
// authenticates before: what fails up to then was not sent, and whatever
// fails afterwards may have been applied.
func (cn *conn) submit(ctx context.Context, op, feature string, request []byte) (wire.Message, error) {
	ctx, cancel := within(ctx, cn.b.c.cfg.ackTimeout)
	defer cancel()
	s, err := cn.session(ctx)
	if err != nil {
		return nil, err
	}
	stop := interrupt(ctx, s.st)
	_, err = s.st.Write(request)
	if stop() {
		s.cancel()
		return nil, ctxError(op, ctx, RetryUnknown)
	}
	if err != nil {
		s.cancel()
		return nil, lost(op, cn.b.addr, RetryUnknown, cn.b.c.cause(err))
	}
	s.endRequest()
	return cn.answer(ctx, s, op, feature, RetryUnknown)
}

// answer reads the one frame that answers a request.
func (cn *conn) answer(ctx context.Context, s *session, op, feature string, sent RetryClass) (wire.Message, error) {
	c := cn.b.c
	stop := interrupt(ctx, s.st)
	m, err := s.message()
	if stop() {
		s.cancel()
		return nil, ctxError(op, ctx, sent)
	}
	if err != nil {
		s.cancel()
		return nil, lost(op, cn.b.addr, sent, c.cause(err))
	}
	c.spawn(s.finish)
	switch m := m.(type) {
	case *wire.Error:
		return nil, refused(op, cn.b.addr, m.Failure())
	case *wire.PublishError:
		return nil, refused(op, cn.b.addr, m.Failure())
	case *wire.Unsupported:
		return nil, &UnsupportedError{Feature: feature, Broker: cn.b.addr}
	}
	return m, nil
}

// begin sends the only request of a stream: one that has authenticated
// already, if it is at hand, else a new one.
func (cn *conn) begin(ctx context.Context, request []byte) (*session, error) {
	s := cn.takeIdle()
	if s == nil {
		return cn.open(ctx, request, true)
	}
	stop := interrupt(ctx, s.st)
	_, err := s.st.Write(request)
	if err == nil {
		s.endRequest()
	}
	if stop() {
		s.cancel()
		return nil, ctxError("connect", ctx, RetryNow)
	}
	if err != nil {
		s.cancel()
		return cn.open(ctx, request, true)
	}
	return s, nil
}

// endRequest ends the sending half behind a request. That it fails says only
// that the broker has stopped reading, perhaps because it has answered
// already: whether the request was served is for the answer to tell. Sending
// it again because of that would make a second subscription of one.
func (s *session) endRequest() { _ = s.st.CloseWrite() }

// finish reads to the end of an answered stream, which the broker ends by
// itself: stopping it instead could look like a failure to a broker that has
// not written its end yet.
func (s *session) finish() {
	s.st.SetReadDeadline(time.Now().Add(helloTimeout))
	for {
		if err := s.in.Fill(); err != nil || s.in.Buffered() {
			s.st.CancelRead(0)
			return
		}
	}
}
