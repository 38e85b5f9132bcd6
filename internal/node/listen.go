package node

import (
	"crypto/tls"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"

	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/transport/udp"
)

// listen opens the client listeners: consecutive ports, each with its own
// socket and reader (wire 2.6).
func (n *Node) listen(o *Options) error {
	tlsConfig, err := serverTLS(o)
	if err != nil {
		return err
	}
	c := &n.cfg.Listen
	n.limiter = quic.NewConnLimiter(quic.Limits{
		MaxConns: c.MaxConnections, MaxPerIP: c.MaxConnectionsPerIP, OnRefused: n.countRefused,
		OnFailed: n.metrics.Connections.HandshakeFailures.Inc,
	})
	host, first, err := splitBind(c.QUICBind)
	if err != nil {
		return err
	}
	var warn sync.Once
	polls := udp.NewPollBudget(max(runtime.GOMAXPROCS(0)/2, 1))
	for i := range c.QUICListeners {
		port := first
		if first != 0 {
			port = first + i
		}
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := quic.Listen(addr, quic.ListenOptions{
			ConnOptions: quic.ConnOptions{
				IdleTimeout: c.MaxIdleTimeout,
				KeepAlive:   c.KeepAlive,
				Windows:     quic.Windows{Stream: uint64(c.StreamRecvWindow), Conn: uint64(c.ConnRecvWindow)},
			},
			TLS:      tlsConfig,
			Limiter:  n.limiter,
			ResetKey: o.ResetKey,
			Socket: udp.Options{
				DisableGRO:    !c.UDPGRO,
				Poll:          c.UDPPoll,
				PollBudget:    polls,
				ReceiveBuffer: c.UDPRecvBuffer,
				SendBuffer:    c.UDPSendBuffer,
				WarnOnce:      &warn,
			},
			Logger: telemetry.Module(n.log, "transport"),
		})
		if err != nil {
			return fmt.Errorf("listen on %s: %w", addr, err)
		}
		n.listeners = append(n.listeners, l)
	}
	return nil
}

func serverTLS(o *Options) (*tls.Config, error) {
	t := &o.Config.TLS
	s := tlsconfig.ServerOptions{
		CertFile: t.CertFile, KeyFile: t.KeyFile, Certificate: o.Certificate,
		ClientCAFile: t.ClientCA, RequireClientCert: t.RequireCert, RequireALPN: t.RequireALPN,
		Logger: o.Logger,
	}
	if s.Certificate != nil {
		s.CertFile, s.KeyFile = "", ""
	}
	if s.Certificate == nil && s.CertFile == "" {
		cert, err := selfSigned(o)
		if err != nil {
			return nil, err
		}
		s.Certificate = cert
	}
	return tlsconfig.NewServer(s)
}

func (n *Node) countRefused(reason string, _ net.Addr) {
	if reason == quic.RefusedPerIPLimit {
		n.metrics.Connections.RefusedPerIP.Inc()
	} else {
		n.metrics.Connections.RefusedLimit.Inc()
	}
}

func splitBind(bind string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(bind)
	if err != nil {
		return "", 0, fmt.Errorf("quic_bind %q: %w", bind, err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("quic_bind %q: want a port from 0 to 65535", bind)
	}
	return host, port, nil
}

// ports lists the client ports when there are several (wire 2.6).
func (n *Node) ports() []uint16 {
	if len(n.listeners) < 2 {
		return nil
	}
	ports := make([]uint16, len(n.listeners))
	for i, l := range n.listeners {
		ports[i] = uint16(l.Addr().(*net.UDPAddr).Port)
	}
	return ports
}
