package quic

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport/udp"
)

// SocketStats describe the UDP socket under a [Listener] or [Dialer].
type SocketStats struct {
	udp.Counters
	// GRO says whether the kernel coalesces received packets.
	GRO bool
	// ReceiveBuffer and SendBuffer are the kernel's buffers in bytes; 0
	// where the system does not tell.
	ReceiveBuffer, SendBuffer int
}

// A socket is one UDP socket and quic-go's transport on it.
type socket struct {
	udp *udp.Conn
	tr  *quicgo.Transport
	log *slog.Logger

	warnGSO   sync.Once
	closeOnce sync.Once
	closeErr  error
}

// maxFirstDatagram is the largest datagram taken from a peer, in bytes. quic-go
// reads and advertises 1452, but the first datagram of a client that does not
// know that yet may be larger: one with a post-quantum key share is, where the
// route allows it, and dropping it would cost every connect a second.
const maxFirstDatagram = 4 << 10

func openSocket(addr string, o udp.Options, log *slog.Logger) (*socket, error) {
	if o.Logger == nil {
		o.Logger = log
	}
	o.Oversize = maxFirstDatagram
	c, err := udp.Listen(addr, o)
	if err != nil {
		return nil, err
	}
	return &socket{udp: c, tr: &quicgo.Transport{Conn: &sized{Conn: c}}, log: log}, nil
}

func (s *socket) stats() SocketStats {
	receive, send := s.udp.Buffers()
	return SocketStats{Counters: s.udp.Counters(), GRO: s.udp.GRO(), ReceiveBuffer: receive, SendBuffer: send}
}

// noteSegmentation warns, once, of a Linux host that cannot coalesce sends:
// it has half the throughput or less.
func (s *socket) noteSegmentation(gso bool) {
	if gso || s.log == nil || runtime.GOOS != "linux" {
		return
	}
	s.warnGSO.Do(func() {
		s.log.Warn("UDP segmentation offload (GSO) is off: expect half the throughput or less",
			"local", s.udp.LocalAddr().String())
	})
}

// close ends quic-go's transport, which drops what connections are left
// without a word, and then the socket.
func (s *socket) close() error {
	s.closeOnce.Do(func() {
		s.closeErr = errors.Join(s.tr.Close(), s.udp.Close())
	})
	return s.closeErr
}

// sized is the socket as quic-go first sees it: one whose buffers are in
// order.
//
// Package udp has set the buffers and reported, through the given logger,
// what the kernel refused. quic-go would then try its own size and, where the
// kernel refuses that too, print a second warning through the process-wide
// standard logger; its only switch is an environment variable. But for a
// connection that has SetReadBuffer and cannot give its descriptor, quic-go
// takes SetReadBuffer's word. So the descriptor is withheld until both
// buffers have been "set", and given from then on, for socket options. Were
// quic-go to ask in another order, opening any socket would fail, and every
// test of this package with it.
type sized struct {
	*udp.Conn
	read, written atomic.Bool
}

var errSized = errors.New("buffers are set already")

func (c *sized) SetReadBuffer(int) error {
	c.read.Store(true)
	return nil
}

func (c *sized) SetWriteBuffer(int) error {
	c.written.Store(true)
	return nil
}

func (c *sized) SyscallConn() (syscall.RawConn, error) {
	if !c.read.Load() || !c.written.Load() {
		return nil, errSized
	}
	return c.Conn.SyscallConn()
}
