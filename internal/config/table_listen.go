package config

import (
	"net"
	"strconv"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	// maxWindow bounds QUIC receive windows.
	maxWindow = 16 * gib
	// maxPort is the last UDP port.
	maxPort = 65535
	// maxWait bounds timeouts.
	maxWait = 24 * time.Hour
)

func (l *Listen) settings() []Setting {
	return []Setting{
		{Key: "quic_bind", Env: "FELIX_QUIC_BIND", Default: "0.0.0.0:5000", value: addressValue{&l.QUICBind},
			Help: "Address of the first client listener (UDP). Port 0 takes a free port and allows one listener only."},
		{Key: "quic_listeners", Env: "FELIX_QUIC_LISTENERS", Derived: "half the CPUs, 1 to 4, as far as ports go",
			value: countValue{&l.QUICListeners, 1, 64}, derive: deriveListeners,
			Help: "Client listeners on consecutive UDP ports, each with a socket and a reader of its own. Clients learn the ports when they authenticate."},
		{Key: "metrics_bind", Env: "FELIX_BROKER_METRICS_BIND", Default: "0.0.0.0:8080", value: addressValue{&l.MetricsBind},
			Help: "Address of the HTTP listener with /live, /ready and /metrics: plain HTTP without authentication, so keep it inside."},
		{Key: "pprof", Env: "FELIX_PPROF", Default: "false", value: boolValue{&l.PProf},
			Help: "Serve /debug/pprof on the HTTP listener. Profiles show memory contents and cost CPU."},
		{Key: "max_client_connections", Env: "FELIX_MAX_CLIENT_CONNECTIONS", Default: "8192", value: countValue{&l.MaxConnections, 1, 1 << 20},
			Help: "Client connections of all listeners together. Further ones are refused before their handshake."},
		{Key: "max_connections_per_ip", Env: "FELIX_MAX_CONNECTIONS_PER_IP", Default: "512", value: countValue{&l.MaxConnectionsPerIP, 0, 1 << 20},
			Help: "Client connections from one source address; 0 is unlimited."},
		{Key: "pub_conn_recv_window", Env: "FELIX_BROKER_PUB_CONN_RECV_WINDOW", Derived: "the larger of pub_conn_inflight_bytes and max_frame_bytes",
			value: sizeValue{&l.ConnRecvWindow, 64 * kib, maxWindow}, derive: deriveConnWindow,
			Help: "QUIC receive window of a client connection: the most bytes a paused reader can have parked here."},
		{Key: "pub_stream_recv_window", Env: "FELIX_BROKER_PUB_STREAM_RECV_WINDOW", Derived: "as pub_conn_recv_window by default, but not above it",
			value: sizeValue{&l.StreamRecvWindow, 64 * kib, maxWindow}, derive: deriveStreamWindow,
			Help: "QUIC receive window of one stream."},
		{Key: "keepalive_ms", Env: "FELIX_KEEPALIVE_MS", Default: "2000", value: durationValue{p: &l.KeepAlive, unit: time.Millisecond, min: time.Millisecond, max: maxWait, off: true},
			Help: "Interval of PINGs on a silent connection. 0, or half the idle timeout or more, becomes a third of the idle timeout, with a warning."},
		{Key: "max_idle_timeout_ms", Env: "FELIX_MAX_IDLE_TIMEOUT_MS", Default: "6000", value: durationValue{p: &l.MaxIdleTimeout, unit: time.Millisecond, min: 10 * time.Millisecond, max: maxWait},
			Help: "A connection from which nothing came for this long is closed. The smaller value of the two sides counts."},
		{Key: "udp_send_buffer", Env: "FELIX_UDP_SEND_BUFFER", Default: "8388608", value: sizeValue{&l.UDPSendBuffer, 64 * kib, gib},
			Help: "Kernel send buffer asked for, per listener; halved until the kernel agrees."},
		{Key: "udp_recv_buffer", Env: "FELIX_UDP_RECV_BUFFER", Default: "8388608", value: sizeValue{&l.UDPRecvBuffer, 64 * kib, gib},
			Help: "Kernel receive buffer asked for, per listener; halved until the kernel agrees."},
		{Key: "udp_gro", Env: "FELIX_UDP_GRO", Default: "true", value: boolValue{&l.UDPGRO},
			Help: "Let the kernel hand over several datagrams at once (UDP GRO) where it can."},
		{Key: "udp_poll_us", Env: "FELIX_UDP_POLL_US", Default: "0", value: durationValue{p: &l.UDPPoll, unit: time.Microsecond, min: time.Microsecond, max: 10 * time.Millisecond, off: true},
			Help: "After traffic, poll the socket for at most this long before parking. Shortens a lone round trip where a core is spare, costs CPU where none is."},
	}
}

// deriveListeners keeps the ports of the listeners within the range.
func deriveListeners(c *Config, cpus int) {
	c.Listen.QUICListeners = max(1, min(cpus/2, 4))
	if port, ok := portOf(c.Listen.QUICBind); ok {
		c.Listen.QUICListeners = min(c.Listen.QUICListeners, maxPort-port+1)
		if port == 0 {
			c.Listen.QUICListeners = 1
		}
	}
}

func portOf(address string) (int, bool) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, false
	}
	port, err := strconv.Atoi(text)
	return port, err == nil
}

func deriveConnWindow(c *Config, _ int) {
	c.Listen.ConnRecvWindow = defaultWindow(c)
}

func deriveStreamWindow(c *Config, _ int) {
	c.Listen.StreamRecvWindow = min(defaultWindow(c), c.Listen.ConnRecvWindow)
}

// defaultWindow lets a paused reader park what its connection may have in
// flight, and a frame of the largest size in any case.
func defaultWindow(c *Config) int {
	return max(min(c.Publish.ConnInflightBytes, maxWindow), c.Sessions.MaxFrameBytes)
}

func (t *TLS) settings() []Setting {
	const file = "a path, or nothing"
	return []Setting{
		{Key: "tls_cert", Env: "FELIX_TLS_CERT", value: textValue{&t.CertFile, file},
			Help: "PEM certificate chain of the client listeners, read again every 30 s. Without one the broker makes a self-signed certificate for localhost and warns."},
		{Key: "tls_key", Env: "FELIX_TLS_KEY", value: textValue{&t.KeyFile, file},
			Help: "PEM private key of tls_cert; set both or neither."},
		{Key: "tls_client_ca", Env: "FELIX_TLS_CLIENT_CA", value: textValue{&t.ClientCA, file},
			Help: "PEM certificates that client certificates must come from. Without them clients are asked for none."},
		{Key: "tls_client_cert_bind_subject", Env: "FELIX_TLS_CLIENT_CERT_BIND_SUBJECT", Default: "false", value: boolValue{&t.BindSubject},
			Help: "Demand that the subject of a client's token is the identity in its certificate. Needs tls_client_ca."},
		{Key: "tls_require_cert", Env: "FELIX_TLS_REQUIRE_CERT", Default: "false", value: boolValue{&t.RequireCert},
			Help: "Refuse clients without a certificate. Needs tls_client_ca."},
		{Key: "tls_require_alpn", Env: "FELIX_TLS_REQUIRE_ALPN", Default: "false", value: boolValue{&t.RequireALPN},
			Help: "Refuse clients that do not offer the ALPN id felix/1. Clients do not offer it unless told to."},
		{Key: "tls_cert_export", Env: "FELIX_TLS_CERT_EXPORT", value: textValue{&t.CertExport, file},
			Help: "Where to write the self-signed certificate, for clients to trust. Refused with tls_cert."},
	}
}
