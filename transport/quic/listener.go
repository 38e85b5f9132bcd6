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
	// accepted are connections that wait for Accept.
	accepted chan *conn

	stopOnce sync.Once
	stopErr  error
}

const (
	// acceptors is how many goroutines wait for quic-go's connections. quic-go
	// refuses whatever finds 32 others waiting, and while many handshakes end
	// together a lone acceptor does not get a turn in time. Each one that is
	// parked takes a connection without its having to wait.
	acceptors = 96
	// maxAccepted is how many connections wait for Accept beyond those.
	maxAccepted = 128
)

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
	l := &Listener{tls: o.TLS, limiter: o.Limiter, accepted: make(chan *conn, maxAccepted)}
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
	l.run()
	return l, nil
}

// run starts taking connections from quic-go, until it hands out no more.
func (l *Listener) run() {
	var running sync.WaitGroup
	for range acceptors {
		running.Go(func() {
			for {
				// A closed listener hands out what waits and then fails.
				qc, err := l.ql.Accept(context.Background())
				if err != nil {
					return
				}
				l.take(qc)
			}
		})
	}
	go func() {
		running.Wait()
		close(l.accepted)
	}()
}

// take puts a connection in the line for Accept.
func (l *Listener) take(qc *quicgo.Conn) {
	if e, ok := qc.Context().Value(leaseKey{}).(*lease); ok {
		e.establish()
	}
	c := newConn(qc, l.socket, l.conns.remove)
	if !l.conns.add(c) {
		c.Close(0, closedReason)
		return
	}
	select {
	case l.accepted <- c:
	case <-qc.Context().Done():
	}
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

// Accept waits for the next connection whose handshake is done; those that
// ended while they waited are passed over. After [Listener.StopAccepting] it
// hands out whoever waits still and then fails with net.ErrClosed. When some
// two hundred wait, further ones are refused.
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	for {
		select {
		case c, ok := <-l.accepted:
			if !ok {
				return nil, fmt.Errorf("quic listener is closed: %w", net.ErrClosed)
			}
			if c.qc.Context().Err() == nil {
				return c, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const closedReason = "endpoint closed"

// Addr is the bound address.
func (l *Listener) Addr() net.Addr { return l.socket.udp.LocalAddr() }

// Conns is how many connections are open, those that wait for Accept included.
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
	l.conns.closeAll(0, closedReason)
	return errors.Join(err, l.socket.close())
}
