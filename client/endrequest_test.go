package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// stopped is a stream whose peer has answered and stopped reading before the
// request's FIN: over a network that is a race of microseconds.
type stopped struct {
	answer  []byte
	written int
}

func (s *stopped) Read(p []byte) (int, error) {
	n := copy(p, s.answer)
	s.answer = s.answer[n:]
	return n, nil
}

func (s *stopped) Write(p []byte) (int, error)    { s.written++; return len(p), nil }
func (s *stopped) TryWrite([]byte) error          { s.written++; return nil }
func (*stopped) CloseWrite() error                { return errors.New("stream reset") }
func (*stopped) CancelRead(uint64)                {}
func (*stopped) CancelWrite(uint64)               {}
func (*stopped) SetReadDeadline(time.Time) error  { return nil }
func (*stopped) SetWriteDeadline(time.Time) error { return nil }
func (*stopped) Context() context.Context         { return context.Background() }
func (*stopped) StreamID() uint64                 { return 0 }

// A request that was served is not sent again because its FIN came too late:
// that would make a second subscription of one, whose events nobody reads.
func TestLateEndIsNoReasonToRepeat(t *testing.T) {
	st := &stopped{answer: wire.AppendMessage(nil, &wire.Subscribed{SubscriptionID: 7})}
	cn := &conn{}
	cn.keep(&session{st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload)})
	s, err := cn.begin(t.Context(), wire.AppendMessage(nil, &wire.Topology{}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.message()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.(*wire.Subscribed); !ok || got.SubscriptionID != 7 || st.written != 1 {
		t.Fatalf("answer %+v after %d requests", m, st.written)
	}
}
