// Package recorder is a scripted Felix endpoint for learning what a client
// really does: it writes down every handshake, stream and frame it sees, and
// answers by hand-made script, right or wrong.
//
// It is built on quic-go and package raw alone, so that what it finds out does
// not depend on this project's broker.
package recorder

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Options of a [Server]. The zero value works.
type Options struct {
	// Addr to listen on; empty is any free port of 127.0.0.1.
	Addr string
	// PKI to serve under; nil makes a fresh one.
	PKI *PKI
	// Script answers requests; nil is the default script.
	Script *Script
	// IdleTimeout is what the server announces; 0 is 30 s.
	IdleTimeout time.Duration
	// KeepAlive is the server's own ping interval; 0 sends none.
	KeepAlive time.Duration
}

// A Server is one scripted endpoint on one UDP socket.
type Server struct {
	pki       *PKI
	socket    *net.UDPConn
	transport *quic.Transport
	listener  *quic.Listener
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu      sync.Mutex
	script  *Script
	conns   []*Conn
	log     []Entry
	changed chan struct{}
	started time.Time
}

type connKey struct{}

// Listen starts a server.
func Listen(o Options) (*Server, error) {
	if o.PKI == nil {
		p, err := NewPKI()
		if err != nil {
			return nil, err
		}
		o.PKI = p
	}
	if o.Script == nil {
		o.Script = &Script{}
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	addr, err := net.ResolveUDPAddr("udp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	socket, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{pki: o.PKI, socket: socket, script: o.Script, cancel: cancel,
		changed: make(chan struct{}), started: time.Now()}
	s.transport = &quic.Transport{Conn: wide(socket), ConnContext: s.newConn}
	s.listener, err = s.transport.Listen(o.PKI.config(s.hello), &quic.Config{
		MaxIdleTimeout:        o.IdleTimeout,
		KeepAlivePeriod:       o.KeepAlive,
		MaxIncomingStreams:    1024,
		MaxIncomingUniStreams: 1024,
		Tracer:                trace,
	})
	if err != nil {
		cancel()
		socket.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.done.Go(func() { s.accept(ctx) })
	return s, nil
}

// newConn makes the record of a connection before its handshake starts.
func (s *Server) newConn(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Conn{server: s, id: len(s.conns) + 1}
	s.conns = append(s.conns, c)
	return context.WithValue(ctx, connKey{}, c), nil
}

func (s *Server) hello(info *tls.ClientHelloInfo) {
	c, ok := info.Context().Value(connKey{}).(*Conn)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.facts.OfferedALPN = info.SupportedProtos
	c.facts.ServerName = info.ServerName
}

func trace(ctx context.Context, _ bool, _ quic.ConnectionID) qlogwriter.Trace {
	c, ok := ctx.Value(connKey{}).(*Conn)
	if !ok {
		return nil
	}
	return paramTrace{c}
}

func (s *Server) accept(ctx context.Context) {
	for {
		qc, err := s.listener.Accept(ctx)
		if err != nil {
			return
		}
		c, ok := qc.Context().Value(connKey{}).(*Conn)
		if !ok {
			panic("connection without its record")
		}
		s.mu.Lock()
		c.quic = qc
		s.mu.Unlock()
		s.record(Entry{Conn: c.id, Kind: KindConnected})
		s.done.Go(func() { c.acceptBidi(ctx) })
		s.done.Go(func() { c.acceptUni(ctx) })
		s.done.Go(func() {
			<-qc.Context().Done()
			s.record(Entry{Conn: c.id, Kind: KindClosed, Note: context.Cause(qc.Context()).Error()})
		})
	}
}

// Addr is the address clients dial.
func (s *Server) Addr() string { return s.socket.LocalAddr().String() }

// PKI is what the server serves under; give it to a successor that must be
// trusted by the same clients.
func (s *Server) PKI() *PKI { return s.pki }

// SetScript changes the answers from the next request on.
func (s *Server) SetScript(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

func (s *Server) currentScript() *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.script
}

// Conns are the connections seen so far, in order of arrival.
func (s *Server) Conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Conn(nil), s.conns...)
}

// Close ends the server as a drain would: every connection is told so.
func (s *Server) Close() error {
	for _, c := range s.Conns() {
		c.Close(0, "broker shutting down")
	}
	return s.stop()
}

// Kill ends the server without a word to anybody, as a killed process does.
func (s *Server) Kill() error {
	// The socket goes first, so that nothing the connections still want to
	// say can leave.
	s.socket.Close()
	return s.stop()
}

func (s *Server) stop() error {
	s.cancel()
	err := errors.Join(s.listener.Close(), s.transport.Close())
	for _, c := range s.Conns() {
		c.Close(0, "")
	}
	s.done.Wait()
	s.socket.Close()
	return err
}
