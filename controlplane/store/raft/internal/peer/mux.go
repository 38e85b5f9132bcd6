// Package peer is the listener between the members of a group, and the way to
// call one: one port for the RPCs of the Raft library and for HTTP, and on every
// connection the same handshake before anything else (control plane 12.6).
package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Config of a listener.
type Config struct {
	ClusterID string
	NodeID    uint64
	Peers     map[uint64]string // id to host:port, this member included
	Token     string
	TLS       TLSFiles
	Random    io.Reader
	Logger    *slog.Logger
	// Rejected, if it is set, is told of each connection that was not let in for a
	// fault of the caller's.
	Rejected func(Refusal)
}

const (
	handshakeTimeout = 5 * time.Second
	maxStrangers     = 64  // connections in their handshake at once
	maxConnections   = 512 // behind it
	backlog          = 64  // connections of a kind that nobody has accepted yet
)

// A Mux is a listener for members.
type Mux struct {
	cfg       Config
	ln        net.Listener
	strangers chan struct{}
	raft      *queue
	http      *queue
	done      chan struct{}
	work      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Listen serves ln, which it closes at the end.
func Listen(ln net.Listener, cfg Config) *Mux {
	m := &Mux{
		cfg:       cfg,
		ln:        ln,
		strangers: make(chan struct{}, maxStrangers),
		done:      make(chan struct{}),
		conns:     make(map[net.Conn]struct{}),
	}
	m.raft = newQueue(m)
	m.http = newQueue(m)
	m.work.Go(m.accept)
	return m
}

// Raft is where connections for the Raft library come in, once somebody has
// asked for it. Until then they are refused.
func (m *Mux) Raft() net.Listener { return m.raft.open() }

// HTTP is where connections for HTTP come in.
func (m *Mux) HTTP() net.Listener { return m.http.open() }

// Addr is where the listener is.
func (m *Mux) Addr() net.Addr { return m.ln.Addr() }

// Close ends the listener and every connection it let in.
func (m *Mux) Close() error {
	m.mu.Lock()
	select {
	case <-m.done:
		m.mu.Unlock()
		return nil
	default:
		close(m.done)
	}
	for c := range m.conns {
		_ = c.Close()
	}
	m.mu.Unlock()
	err := m.ln.Close()
	m.work.Wait()
	return err
}

func (m *Mux) accept() {
	for {
		conn, err := m.ln.Accept()
		if err != nil {
			select {
			case <-m.done:
				return
			case <-time.After(50 * time.Millisecond): // out of descriptors, say
				m.cfg.Logger.Warn("peer connection not accepted", "error", err)
				continue
			}
		}
		select {
		case m.strangers <- struct{}{}:
			m.work.Go(func() {
				m.admit(conn)
				<-m.strangers
			})
		default:
			m.reject(conn, TooMany)
		}
	}
}

func (m *Mux) reject(conn net.Conn, err error) {
	_ = conn.Close()
	var why Refusal
	if !errors.As(err, &why) {
		why = Malformed
	}
	if why == NotReady {
		return // no fault of the caller's
	}
	if m.cfg.Rejected != nil {
		m.cfg.Rejected(why)
	}
	m.cfg.Logger.Info("peer connection refused", "address", conn.RemoteAddr().String(), "reason", string(why))
}

// admit makes a stranger's connection one of a member, or closes it.
func (m *Mux) admit(raw net.Conn) {
	_ = raw.SetDeadline(time.Now().Add(handshakeTimeout))
	if !m.track(raw) {
		m.reject(raw, TooMany)
		return
	}
	conn := net.Conn(&tracked{Conn: raw, mux: m})
	if m.cfg.TLS.Set() {
		cfg, err := m.cfg.TLS.server()
		if err != nil {
			m.cfg.Logger.Error("peer TLS", "error", err)
			m.reject(conn, NoTLS)
			return
		}
		secure := tls.Server(conn, cfg)
		if err := secure.Handshake(); err != nil {
			m.reject(conn, NoTLS)
			return
		}
		conn = secure
	}
	h, err := m.cfg.answer(conn)
	if err == nil {
		err = m.hand(conn, h.kind)
	}
	if err != nil {
		if b := status(err); b != 0 {
			_, _ = conn.Write([]byte{b})
		}
		m.reject(conn, err)
	}
}

// hand gives the connection to who serves its kind.
func (m *Mux) hand(conn net.Conn, kind Kind) error {
	q := m.http
	if kind == Raft {
		q = m.raft
	}
	release, err := q.reserve()
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		release()
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	q.conns <- conn // there is room: it was reserved
	return nil
}

// track remembers a connection, so that Close ends it.
func (m *Mux) track(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.done:
		return false
	default:
	}
	if len(m.conns) >= maxConnections+maxStrangers {
		return false
	}
	m.conns[c] = struct{}{}
	return true
}

// A tracked connection leaves the list when it is closed.
type tracked struct {
	net.Conn
	mux *Mux
}

func (t *tracked) Close() error {
	t.mux.mu.Lock()
	delete(t.mux.conns, t.Conn)
	t.mux.mu.Unlock()
	return t.Conn.Close()
}
