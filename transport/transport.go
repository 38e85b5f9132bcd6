// Package transport carries Felix frames between peers.
//
// Everything above this package sees connections and streams only as the
// interfaces below, so that a second carrier (TLS over TCP, say) can stand
// beside QUIC without a change in any other room. The QUIC carrier is
// transport/quic; the receive path of its UDP sockets is transport/udp.
package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"
)

// ErrWouldBlock is what [SendStream.TryWrite] answers when the peer's flow
// control window has no room for the whole of p. Nothing was written.
var ErrWouldBlock = errors.New("write would block")

// Errors a caller decides on. The first three are found with [errors.Is] in a
// [*CloseError] whose Application is clear.
var (
	// ErrRefused: the peer turned the connection away before the handshake,
	// because it is at a connection cap or is stopping. Try another peer, or
	// this one later.
	ErrRefused = errors.New("connection refused")
	// ErrIdleTimeout: nothing was heard from the peer for the idle timeout.
	ErrIdleTimeout = errors.New("idle timeout")
	// ErrHandshakeTimeout: the peer did not answer, or not to the end.
	ErrHandshakeTimeout = errors.New("handshake timeout")
	// ErrWriteClosed: a write after [SendStream.CloseWrite].
	ErrWriteClosed = errors.New("write on a finished stream")
)

// A Conn is one authenticated, encrypted connection to a peer. All methods
// are safe for concurrent use.
type Conn interface {
	// OpenStream opens a bidirectional stream, waiting for stream credit
	// until ctx ends. The peer sees the stream with its first bytes.
	OpenStream(ctx context.Context) (Stream, error)
	// OpenUniStream opens a stream that only this side writes.
	OpenUniStream(ctx context.Context) (SendStream, error)
	// AcceptStream waits for the next bidirectional stream of the peer.
	AcceptStream(ctx context.Context) (Stream, error)
	// AcceptUniStream waits for the next unidirectional stream of the peer.
	AcceptUniStream(ctx context.Context) (ReceiveStream, error)

	// Close ends the connection and every stream on it at once; unsent data
	// is dropped. The peer reads code and reason in a [*CloseError].
	Close(code uint64, reason string) error
	// Context ends when the connection does; its cause says why.
	Context() context.Context

	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// PeerCertificates is the peer's verified chain, leaf first; empty when
	// it presented none.
	PeerCertificates() []*x509.Certificate
	// ALPN is the negotiated application protocol, empty when none was.
	ALPN() string
	// Stats reads the carrier's counters for this connection.
	Stats() Stats
}

// A ReceiveStream is the readable half of a stream. One goroutine reads.
type ReceiveStream interface {
	io.Reader
	// CancelRead tells the peer to stop sending; later reads fail.
	CancelRead(code uint64)
	// SetReadDeadline bounds pending and later reads; zero removes the bound.
	SetReadDeadline(t time.Time) error
	// StreamID is unique on its connection.
	StreamID() uint64
}

// A SendStream is the writable half of a stream. One goroutine writes at a
// time.
type SendStream interface {
	// Write blocks until the carrier has taken all of p. It may be retained
	// only for the duration of the call.
	io.Writer
	// TryWrite takes all of p without blocking, or nothing: see
	// [ErrWouldBlock]. It suits small replies; bulk wants Write.
	TryWrite(p []byte) error
	// CloseWrite ends the stream cleanly after what was written (FIN).
	CloseWrite() error
	// CancelWrite ends the stream uncleanly (RESET); unsent data is dropped.
	CancelWrite(code uint64)
	// SetWriteDeadline bounds pending and later writes; zero removes it.
	SetWriteDeadline(t time.Time) error
	// Context ends when the peer refuses further data, or the write half or
	// the connection ends.
	Context() context.Context
	// StreamID is unique on its connection.
	StreamID() uint64
}

// A Stream is bidirectional.
type Stream interface {
	ReceiveStream
	SendStream
}

// A Listener accepts connections on one socket.
type Listener interface {
	// Accept waits for the next established connection.
	Accept(ctx context.Context) (Conn, error)
	// Addr is the bound address.
	Addr() net.Addr
	// StopAccepting refuses further handshakes; open connections live on.
	StopAccepting() error
	// Close ends the listener, its connections and its socket.
	Close() error
}

// Stats are the counters of one connection.
type Stats struct {
	// SmoothedRTT is the carrier's round-trip estimate; zero before the
	// first sample.
	SmoothedRTT time.Duration
	// MTU is the largest packet in bytes the path is known to carry; 0 until
	// the carrier has sent enough to tell.
	MTU int
	// PacketsSent, PacketsReceived and PacketsLost count packets since the
	// connection was made.
	PacketsSent, PacketsReceived, PacketsLost uint64
	// BytesSent and BytesReceived count packet bytes.
	BytesSent, BytesReceived uint64
	// GSO says whether sends are coalesced by the kernel.
	GSO bool
	// GRO says whether receives are coalesced by the kernel.
	GRO bool
}

// A CloseError says that a connection ended and who ended it.
type CloseError struct {
	// Code and Reason are those of [Conn.Close] when Application is set.
	Code   uint64
	Reason string
	// Remote is set when the peer closed.
	Remote bool
	// Application is set for a Close by an application, and clear for idle
	// timeouts, refused handshakes and transport failures.
	Application bool
	// Err is the carrier's own error.
	Err error
}

func (e *CloseError) Error() string {
	if e.Reason != "" {
		return "connection closed: " + e.Reason
	}
	if e.Err != nil {
		return "connection closed: " + e.Err.Error()
	}
	return "connection closed"
}

func (e *CloseError) Unwrap() error { return e.Err }

// A ResetError says that the peer abandoned its half of one stream; the
// connection and its other streams live on.
type ResetError struct {
	Code uint64
	// Remote is set when the peer reset, clear when this side cancelled.
	Remote bool
}

func (e *ResetError) Error() string { return "stream reset" }
