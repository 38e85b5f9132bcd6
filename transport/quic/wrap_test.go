package quic

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
)

// A fakeStream is quic-go's end of a stream that takes and gives everything,
// except what tryErr says.
type fakeStream struct {
	tryErr error
}

func (*fakeStream) Write(p []byte) (int, error)        { return len(p), nil }
func (s *fakeStream) TryWriteAll([]byte) error         { return s.tryErr }
func (*fakeStream) Close() error                       { return nil }
func (*fakeStream) CancelWrite(quicgo.StreamErrorCode) {}
func (*fakeStream) SetWriteDeadline(time.Time) error   { return nil }
func (*fakeStream) Context() context.Context           { return context.Background() }
func (*fakeStream) StreamID() quicgo.StreamID          { return 4 }
func (*fakeStream) Read(p []byte) (int, error)         { return len(p), nil }
func (*fakeStream) CancelRead(quicgo.StreamErrorCode)  {}
func (*fakeStream) SetReadDeadline(time.Time) error    { return nil }

func TestStreamOperationsAllocateNothing(t *testing.T) {
	fake := &fakeStream{}
	var s transport.Stream = &stream{receiveStream: receiveStream{fake}, sendStream: sendStream{s: fake}}
	p := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		s.Write(p)
		s.Read(p)
		fake.tryErr = nil
		if err := s.TryWrite(p); err != nil {
			t.Fatal(err)
		}
		fake.tryErr = quicgo.ErrWouldBlock
		if err := s.TryWrite(p); err != transport.ErrWouldBlock {
			t.Fatal(err)
		}
		s.SetReadDeadline(time.Time{})
		s.SetWriteDeadline(time.Time{})
		s.StreamID()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Errors that are not quic-go's pass as they are.
func TestMapErrorPassesOthers(t *testing.T) {
	for _, err := range []error{nil, io.EOF, context.Canceled, io.ErrUnexpectedEOF} {
		if got := mapError(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestMissingSegmentationIsReportedOnce(t *testing.T) {
	var log bytes.Buffer
	s := &socket{log: slog.New(slog.NewTextHandler(&log, nil))}
	e := newEnds(t, nil, nil)
	s.udp = e.listener.socket.udp
	s.noteSegmentation(true)
	if log.Len() > 0 {
		t.Errorf("reported while on: %s", &log)
	}
	s.noteSegmentation(false)
	s.noteSegmentation(false)
	want := 0
	if runtime.GOOS == "linux" {
		want = 1
	}
	if n := strings.Count(log.String(), "GSO"); n != want {
		t.Errorf("reported %d times, want %d: %s", n, want, &log)
	}
	(&socket{}).noteSegmentation(false) // without a logger: silent
}
