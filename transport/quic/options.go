package quic

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/felixlog/felix/transport/udp"
)

// Defaults of wire 2.2.
const (
	DefaultIdleTimeout      = 6 * time.Second
	DefaultMaxStreams       = 1024
	DefaultHandshakeTimeout = 5 * time.Second
)

// Windows bound what a peer may have sent that this side has not read, in
// bytes; they are the most memory a peer can make a connection hold.
//
// QUIC starts a connection at the Initial sizes. Each time the application
// has read more than half of a window within about two round trips, quic-go
// doubles it, up to Stream and Conn. A peer that is not read (because it has
// not authenticated, say) never gets past the initial sizes. Setting Initial
// equal to the maximum turns the tuning off.
type Windows struct {
	// Stream and Conn are the largest sizes, of one stream and of the whole
	// connection. Conn may not be smaller than Stream.
	Stream, Conn uint64
	// InitialStream and InitialConn are the sizes at the start; 0 means
	// 512 KiB and 1 MiB, or the largest size where that is smaller.
	InitialStream, InitialConn uint64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// BrokerWindows are those of a broker's client listeners: the 16 MiB publish
// budget of a connection (wire 2.2).
func BrokerWindows() Windows { return Windows{Stream: 16 * mib, Conn: 16 * mib} }

// EventWindows are those of a client's event and cache connections (wire 2.2).
func EventWindows() Windows { return Windows{Stream: 64 * mib, Conn: 256 * mib} }

// DefaultWindows are those of connections with no special use (wire 2.2).
func DefaultWindows() Windows { return Windows{Stream: 16 * mib, Conn: 64 * mib} }

// ConnOptions are common to both ends of a connection. The zero value is the
// default of wire 2.2.
type ConnOptions struct {
	// IdleTimeout ends a connection on which nothing arrived for so long;
	// the lower of the two sides' counts. 0 means [DefaultIdleTimeout].
	IdleTimeout time.Duration
	// KeepAlive is the time between packets on a silent connection. 0, or
	// half the idle timeout and more, becomes a third of it: see
	// [KeepAlivePeriod]. Negative sends none.
	KeepAlive time.Duration
	// HandshakeTimeout ends an attempt during which the peer was silent for
	// so long; the whole handshake may take twice that. 0 means
	// [DefaultHandshakeTimeout].
	HandshakeTimeout time.Duration
	// MaxStreams and MaxUniStreams are how many streams of each kind the
	// peer may have open at a time. 0 means [DefaultMaxStreams], negative
	// none.
	MaxStreams, MaxUniStreams int64
	// Windows bound received and unread bytes. Zero means [BrokerWindows]
	// for a listener and [DefaultWindows] for a dialer.
	Windows Windows
}

// ListenOptions configure a [Listener].
type ListenOptions struct {
	ConnOptions
	// TLS is required: see tlsconfig.NewServer.
	TLS *tls.Config
	// Limiter holds the connection caps; several listeners may share one.
	// Nil sets no cap.
	Limiter *ConnLimiter
	// ResetKey, if set and kept across restarts, lets clients of the process
	// before a restart learn of it with their next packet instead of after
	// the idle timeout.
	ResetKey *[32]byte
	// Socket configures the UDP socket.
	Socket udp.Options
	// Logger receives warnings about the configuration and the host. Nil is
	// silent. It also serves Socket where that has none.
	Logger *slog.Logger
}

// DialOptions configure a [Dialer].
type DialOptions struct {
	ConnOptions
	// TLS is required: see tlsconfig.NewClient. Without a ServerName the
	// dialled host is used.
	TLS *tls.Config
	// LocalAddr is the UDP address to bind; empty means any.
	LocalAddr string
	// Socket configures the UDP socket.
	Socket udp.Options
	// Logger receives warnings. Nil is silent.
	Logger *slog.Logger
}
