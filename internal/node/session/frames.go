package session

import (
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// A pacedReader reads a stream for its frame reader and bounds the pause
// inside a frame: a half header or half payload does not pin a goroutine for
// ever. Between frames a stream may be silent as long as its connection
// lives. Before authentication the whole wait is bounded instead.
type pacedReader struct {
	stream  transport.ReceiveStream
	pause   time.Duration
	partial func() bool
	preauth bool
	armed   bool
}

// newFrames cuts the frames of an unauthenticated stream; see admit.
func newFrames(st transport.ReceiveStream, srv *Server) *frames {
	paced := &pacedReader{stream: st, pause: srv.cfg.FrameReadTimeout, preauth: true}
	if srv.cfg.AuthTimeout > 0 {
		// A stream that was reset already fails its first read.
		_ = st.SetReadDeadline(time.Now().Add(srv.cfg.AuthTimeout))
		paced.armed = true
	}
	f := &frames{FrameReader: wire.NewFrameReader(paced, srv.cfg.PreauthMaxFrameBytes), paced: paced}
	paced.partial = f.Partial
	return f
}

// frames are the incoming frames of one client stream.
type frames struct {
	*wire.FrameReader
	paced *pacedReader
}

// admit lifts the bounds that hold before authentication.
func (f *frames) admit(maxFrame int) {
	f.paced.preauth = false
	f.SetMax(maxFrame)
}

func (p *pacedReader) Read(b []byte) (int, error) {
	var deadline time.Time
	switch {
	case p.preauth:
		return p.stream.Read(b)
	case p.partial():
		deadline = time.Now().Add(p.pause)
	case !p.armed:
		return p.stream.Read(b)
	}
	p.armed = !deadline.IsZero()
	if err := p.stream.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	return p.stream.Read(b)
}
