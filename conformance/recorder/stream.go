package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixlog/felix/conformance/raw"
)

// maxPayload is the longest frame the server reads.
const maxPayload = 16 << 20

// A Conn is one client connection.
type Conn struct {
	server *Server
	id     int

	// Guarded by server.mu.
	quic  *quic.Conn
	facts Facts
	first time.Time
}

// ID numbers connections from 1 in order of arrival.
func (c *Conn) ID() int { return c.id }

// Close ends the connection with an application code.
func (c *Conn) Close(code uint64, reason string) {
	if qc := c.QUIC(); qc != nil {
		qc.CloseWithError(quic.ApplicationErrorCode(code), reason)
	}
}

// OpenEvents opens an event stream and writes its hello (wire 10, rule 3).
func (c *Conn) OpenEvents(subscriptionID uint64) (*Stream, error) {
	s, err := c.OpenUni()
	if err != nil {
		return nil, err
	}
	return s, s.Send(raw.JSON(fmt.Sprintf(`{"type":"event_stream_hello","subscription_id":%d}`, subscriptionID)))
}

// OpenUni opens a stream to the client. It sees the stream with its first
// bytes.
func (c *Conn) OpenUni() (*Stream, error) {
	q, err := c.QUIC().OpenUniStream()
	if err != nil {
		return nil, fmt.Errorf("open event stream: %w", err)
	}
	return &Stream{Conn: c, id: int64(q.StreamID()), uni: true, send: q}, nil
}

func (c *Conn) acceptBidi(ctx context.Context) {
	for {
		q, err := c.QUIC().AcceptStream(ctx)
		if err != nil {
			return
		}
		s := &Stream{Conn: c, id: int64(q.StreamID()), send: q, receive: q}
		c.server.done.Go(s.serve)
	}
}

func (c *Conn) acceptUni(ctx context.Context) {
	for {
		q, err := c.QUIC().AcceptUniStream(ctx)
		if err != nil {
			return
		}
		s := &Stream{Conn: c, id: int64(q.StreamID()), uni: true, receive: q}
		c.server.done.Go(s.serve)
	}
}

type sendSide interface {
	io.WriteCloser
	CancelWrite(quic.StreamErrorCode)
}

type receiveSide interface {
	io.Reader
	CancelRead(quic.StreamErrorCode)
}

// A Stream is one stream of a connection, either side's.
type Stream struct {
	Conn *Conn

	id      int64
	uni     bool
	receive receiveSide
	write   sync.Mutex
	send    sendSide
	// served counts the frames read, the auth included.
	served int
	ended  bool
}

// ID is the QUIC stream id.
func (s *Stream) ID() int64 { return s.id }

// Uni says whether the stream goes one way only.
func (s *Stream) Uni() bool { return s.uni }

func (s *Stream) entry(k Kind, f raw.Frame, note string) {
	s.Conn.server.record(Entry{Conn: s.Conn.id, Stream: s.id, Uni: s.uni, Kind: k, Frame: f, Note: note})
}

// Send writes frames in one go.
func (s *Stream) Send(frames ...raw.Frame) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.send == nil {
		return errors.New("stream has no send side")
	}
	var b []byte
	for _, f := range frames {
		s.entry(KindOut, f, "")
		b = f.Append(b)
	}
	_, err := s.send.Write(b)
	return err
}

// FIN ends the send side cleanly.
func (s *Stream) FIN() {
	s.write.Lock()
	defer s.write.Unlock()
	s.ended = true
	if s.send != nil {
		s.send.Close()
	}
}

// Reset ends the send side uncleanly.
func (s *Stream) Reset(code uint64) {
	s.write.Lock()
	defer s.write.Unlock()
	s.ended = true
	if s.send != nil {
		s.send.CancelWrite(quic.StreamErrorCode(code))
	}
}

// StopReading refuses whatever else the client wants to send.
func (s *Stream) StopReading(code uint64) {
	if s.receive != nil {
		s.receive.CancelRead(quic.StreamErrorCode(code))
	}
}

func (s *Stream) serve() {
	for {
		f, err := raw.ReadFrame(s.receive, maxPayload)
		var reset *quic.StreamError
		switch {
		case errors.Is(err, io.EOF):
			s.entry(KindFIN, raw.Frame{}, "")
			s.FIN()
			return
		case errors.As(err, &reset):
			s.entry(KindReset, raw.Frame{}, fmt.Sprintf("code %d", reset.ErrorCode))
			s.FIN()
			return
		case err != nil:
			s.entry(KindReset, raw.Frame{}, err.Error())
			return
		}
		s.entry(KindIn, f, "")
		s.served++
		s.Conn.server.currentScript().answer(s, f)
	}
}
