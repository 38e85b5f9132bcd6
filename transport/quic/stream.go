package quic

import (
	"context"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
)

var (
	_ transport.Stream        = (*stream)(nil)
	_ transport.SendStream    = (*sendStream)(nil)
	_ transport.ReceiveStream = (*receiveStream)(nil)
)

// sender is the writable half of quic-go's streams.
type sender interface {
	Write(p []byte) (int, error)
	TryWriteAll(p []byte) error
	Close() error
	CancelWrite(quicgo.StreamErrorCode)
	SetWriteDeadline(time.Time) error
	Context() context.Context
	StreamID() quicgo.StreamID
}

// receiver is the readable half of quic-go's streams.
type receiver interface {
	Read(p []byte) (int, error)
	CancelRead(quicgo.StreamErrorCode)
	SetReadDeadline(time.Time) error
	StreamID() quicgo.StreamID
}

type sendStream struct {
	s sender
	// ctx is made when first asked for: most streams never are.
	once sync.Once
	ctx  context.Context
}

func (s *sendStream) Write(p []byte) (int, error) {
	n, err := s.s.Write(p)
	if err != nil {
		err = mapError(err)
	}
	return n, err
}

func (s *sendStream) TryWrite(p []byte) error { return mapError(s.s.TryWriteAll(p)) }

func (s *sendStream) CloseWrite() error {
	if err := s.s.Close(); err != nil {
		// quic-go says only that the half was cancelled; its context knows by
		// whom and with which code.
		return mapError(context.Cause(s.s.Context()))
	}
	return nil
}

func (s *sendStream) CancelWrite(code uint64) { s.s.CancelWrite(quicgo.StreamErrorCode(code)) }

func (s *sendStream) SetWriteDeadline(t time.Time) error { return s.s.SetWriteDeadline(t) }

// Context may end a moment after a write has failed already: it follows the
// carrier's, to name the cause in transport's terms.
func (s *sendStream) Context() context.Context {
	s.once.Do(func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		carrier := s.s.Context()
		context.AfterFunc(carrier, func() { cancel(mapError(context.Cause(carrier))) })
		s.ctx = ctx
	})
	return s.ctx
}

func (s *sendStream) StreamID() uint64 { return uint64(s.s.StreamID()) }

type receiveStream struct{ r receiver }

func (s *receiveStream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		err = mapError(err)
	}
	return n, err
}

func (s *receiveStream) CancelRead(code uint64) { s.r.CancelRead(quicgo.StreamErrorCode(code)) }

func (s *receiveStream) SetReadDeadline(t time.Time) error { return s.r.SetReadDeadline(t) }

func (s *receiveStream) StreamID() uint64 { return uint64(s.r.StreamID()) }

// A stream is both halves in one allocation.
type stream struct {
	receiveStream
	sendStream
}

func newStream(s *quicgo.Stream) *stream {
	return &stream{receiveStream: receiveStream{s}, sendStream: sendStream{s: s}}
}

func (s *stream) StreamID() uint64 { return s.sendStream.StreamID() }
