package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
)

var _ transport.Listener = (*Listener)(nil)

// A Listener accepts connections on one UDP socket.
type Listener struct {
	socket  *socket
	ql      *quicgo.Listener
	tls     *tls.Config
	limiter *ConnLimiter
	conns   registry

	stopOnce sync.Once
	stopErr  error
}

// leaseKey finds a connection's lease in its context.
type leaseKey struct{}

// Listen binds addr ("host:port", port 0 for any) and accepts connections on
// it. Errors are about the options or the socket.
func Listen(addr string, o ListenOptions) (*Listener, error) {
	if o.TLS == nil {
		return nil, errors.New("quic listen: TLS is required")
	}
	cfg, err := o.config(orDefault(o.Windows, BrokerWindows()), o.Logger)
	if err != nil {
		return nil, fmt.Errorf("quic listen %s: %w", addr, err)
	}
	l := &Listener{tls: o.TLS, limiter: o.Limiter}
	if l.limiter == nil {
		l.limiter = NewConnLimiter(Limits{})
	}
	if l.socket, err = openSocket(addr, o.Socket, o.Logger); err != nil {
		return nil, fmt.Errorf("quic listen: %w", err)
	}
	l.socket.tr.StatelessResetKey = (*quicgo.StatelessResetKey)(o.ResetKey)
	l.socket.tr.VerifySourceAddress = l.limiter.mustVerify
	l.socket.tr.ConnContext = l.admit
	if l.ql, err = l.socket.tr.Listen(l.tls, cfg); err != nil {
		return nil, fmt.Errorf("quic listen %s: %w", addr, errors.Join(err, l.socket.udp.Close()))
	}
	return l, nil
}

// admit counts a new connection until its context ends; an error refuses it
// before any cryptography.
func (l *Listener) admit(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
	lease, err := l.limiter.acquire(info.RemoteAddr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, lease.release)
	return context.WithValue(ctx, leaseKey{}, lease), nil
}

// Accept waits for the next connection whose handshake is done. After
// [Listener.StopAccepting] it hands out those already waiting and then fails
// with net.ErrClosed. Call it in a tight loop: at most 32 wait.
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	for {
		qc, err := l.ql.Accept(ctx)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil, fmt.Errorf("quic listener is closed: %w", net.ErrClosed)
			}
			return nil, err
		}
		if e, ok := qc.Context().Value(leaseKey{}).(*lease); ok {
			e.establish()
		}
		c := newConn(qc, l.socket, l.conns.remove)
		if l.conns.add(c) {
			return c, nil
		}
		c.Close(0, closedReason)
	}
}

const closedReason = "endpoint closed"

// Addr is the bound address.
func (l *Listener) Addr() net.Addr { return l.socket.udp.LocalAddr() }

// Conns is how many accepted connections are open.
func (l *Listener) Conns() int { return l.conns.len() }

// Socket reads the counters of the UDP socket.
func (l *Listener) Socket() SocketStats { return l.socket.stats() }

// StopAccepting refuses further handshakes, and those in flight, with
// CONNECTION_REFUSED; open connections live on.
func (l *Listener) StopAccepting() error {
	l.stopOnce.Do(func() {
		err := l.ql.Close()
		// A closed listener leaves newcomers without an answer. One that
		// refuses everybody sends them elsewhere at once.
		_, again := l.socket.tr.Listen(l.tls, &quicgo.Config{
			GetConfigForClient: func(*quicgo.ClientInfo) (*quicgo.Config, error) {
				return nil, transport.ErrRefused
			},
		})
		if !errors.Is(again, quicgo.ErrTransportClosed) {
			err = errors.Join(err, again)
		}
		l.stopErr = err
	})
	return l.stopErr
}

// Close closes every connection with code 0, then the listener and the
// socket. It may be called again.
func (l *Listener) Close() error {
	err := l.ql.Close()
	// Whoever finished a handshake and was not accepted is told, too. A closed
	// listener hands out what waits and then fails, without blocking.
	for {
		qc, closed := l.ql.Accept(context.Background())
		if closed != nil {
			break
		}
		qc.CloseWithError(0, closedReason)
	}
	l.conns.closeAll(0, closedReason)
	return errors.Join(err, l.socket.close())
}
