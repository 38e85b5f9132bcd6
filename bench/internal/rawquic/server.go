package rawquic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// The first byte of a bidirectional stream says what it is for. A
// unidirectional stream carries frames to be counted.
const (
	kindEcho = 'E'
	kindMark = 'M'
)

const (
	readBuffer = 256 << 10 // bytes taken from a stream at once, as Felix does
	markSize   = 16        // frames u64, time i64
)

// A ServerSpec configures a server.
type ServerSpec struct {
	TLS  pki.Files     `json:"tls"`
	Poll time.Duration `json:"poll_ns"`
}

// Endpoint is what a started server says.
type Endpoint struct {
	Addr string `json:"addr"`
}

// Serve runs a server until ctx ends. It tells ready its address.
func Serve(ctx context.Context, spec ServerSpec, ready func(Endpoint) error) error {
	ln, err := listen(spec.TLS, spec.Poll)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	if err := ready(Endpoint{Addr: ln.Addr().String()}); err != nil {
		return err
	}
	s := &server{start: time.Now()}
	for {
		conn, err := ln.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go s.acceptUni(ctx, conn)
		go s.acceptBidi(ctx, conn)
	}
}

type server struct {
	start  time.Time
	frames atomic.Uint64
	last   atomic.Int64 // time of the last arrival, nanoseconds since start
}

func (s *server) now() int64 { return int64(time.Since(s.start)) }

func (s *server) acceptUni(ctx context.Context, conn transport.Conn) {
	for {
		st, err := conn.AcceptUniStream(ctx)
		if err != nil {
			return // the connection ended
		}
		go s.sink(st)
	}
}

func (s *server) acceptBidi(ctx context.Context, conn transport.Conn) {
	for {
		st, err := conn.AcceptStream(ctx)
		if err != nil {
			return // the connection ended
		}
		go s.serve(ctx, st)
	}
}

// sink counts frames: the whole cost of a publish but the transport.
func (s *server) sink(st transport.ReceiveStream) {
	cut := cutter{buf: make([]byte, readBuffer)}
	for {
		frames, err := cut.read(st, nil)
		if frames > 0 {
			s.frames.Add(uint64(frames))
			s.last.Store(s.now())
		}
		if err != nil {
			st.CancelRead(0)
			return
		}
	}
}

func (s *server) serve(ctx context.Context, st transport.Stream) {
	defer st.CancelRead(0)
	var kind [1]byte
	if _, err := io.ReadFull(st, kind[:]); err != nil {
		return
	}
	switch kind[0] {
	case kindEcho:
		s.echo(st)
	case kindMark:
		s.mark(ctx, st)
	}
	_ = st.CloseWrite() // the peer may have gone first
}

// mark answers how many frames have arrived, once it is as many as asked
// for, and when the last did (or now, when none is waited for).
func (s *server) mark(ctx context.Context, st transport.Stream) {
	var q [8]byte
	if _, err := io.ReadFull(st, q[:]); err != nil {
		return
	}
	want := binary.BigEndian.Uint64(q[:])
	for s.frames.Load() < want && ctx.Err() == nil && st.Context().Err() == nil {
		time.Sleep(200 * time.Microsecond)
	}
	at := s.last.Load()
	if want == 0 {
		at = s.now()
	}
	a := binary.BigEndian.AppendUint64(make([]byte, 0, markSize), s.frames.Load())
	a = binary.BigEndian.AppendUint64(a, uint64(at))
	_, _ = st.Write(a) // a peer that has gone needs no answer
}

// echo answers each request with as many bytes as it asks for, all requests
// of one read in one write: the whole cost of a cache get but the cache.
func (s *server) echo(st transport.Stream) {
	cut := cutter{buf: make([]byte, readBuffer)}
	var out []byte
	for {
		out = out[:0]
		_, err := cut.read(st, func(payload []byte) {
			out = appendReply(out, payload)
		})
		if len(out) > 0 {
			if _, err := st.Write(out); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// errFrame is a frame that does not fit the buffer, or is none.
var errFrame = errors.New("not a frame of this benchmark")

// A cutter cuts frames out of a stream.
type cutter struct {
	buf []byte
	n   int
}

// read takes what has arrived, calls each (if set) with the payload of every
// complete frame, and counts them.
func (c *cutter) read(r io.Reader, each func(payload []byte)) (frames int, err error) {
	k, err := r.Read(c.buf[c.n:])
	c.n += k
	at := 0
	for c.n-at >= wire.HeaderSize {
		h, perr := wire.ParseHeader(c.buf[at:])
		end := at + wire.HeaderSize + int(h.Length)
		if perr != nil || end-at > len(c.buf) {
			return frames, errFrame
		}
		if end > c.n {
			break
		}
		if each != nil {
			each(c.buf[at+wire.HeaderSize : end])
		}
		at = end
		frames++
	}
	c.n = copy(c.buf, c.buf[at:c.n])
	return frames, err
}
