package config

import (
	"fmt"
	"time"
)

// atMost lists the pairs of settings of which the first may not exceed the
// second (broker 14.3). Equal values are fine.
var atMost = []struct{ small, large string }{
	{"event_batch_max_bytes", "max_frame_bytes"},
	{"preauth_max_frame_bytes", "max_frame_bytes"},
	{"pub_conn_inflight_bytes", "pub_inflight_bytes"},
	{"pub_conn_inflight_bytes", "pub_conn_total_inflight_bytes"},
	{"pub_conn_total_inflight_bytes", "pub_inflight_bytes"},
	{"max_frame_bytes", "pub_conn_recv_window"},
	{"max_frame_bytes", "pub_stream_recv_window"},
	{"pub_stream_recv_window", "pub_conn_recv_window"},
	{"max_subscriptions_per_conn", "max_subscriptions_per_conn_total"},
	{"group_visibility_timeout_ms", "group_max_visibility_ms"},
}

// check refuses combinations that cannot work and adjusts the one that is
// adjusted by contract.
func (l *loader) check() {
	for _, pair := range atMost {
		l.checkAtMost(pair.small, pair.large)
	}
	l.checkPorts()
	l.checkTLS()
	l.checkStorage()
	l.checkCluster()
	l.adjustKeepAlive()
	if c := l.cfg; c.Sessions.MaxFrameBytes > c.Publish.ConnInflightBytes {
		l.warn("max_frame_bytes is %d (%s), more than pub_conn_inflight_bytes, %d (%s): a publish larger than the latter is never admitted",
			c.Sessions.MaxFrameBytes, l.origin("max_frame_bytes"), c.Publish.ConnInflightBytes, l.origin("pub_conn_inflight_bytes"))
	}
}

func (l *loader) checkAtMost(small, large string) {
	low, lowIs := l.byKey[small].value.(number)
	high, highIs := l.byKey[large].value.(number)
	if !lowIs || !highIs || low.number() <= high.number() {
		return
	}
	l.fault(fmt.Errorf("%s is %d (%s), more than %s, which is %d (%s): lower the first or raise the second",
		small, low.number(), l.origin(small), large, high.number(), l.origin(large)))
}

func (l *loader) checkPorts() {
	c := l.cfg
	port, ok := portOf(c.Listen.QUICBind)
	if !ok {
		return
	}
	if port == 0 && c.Listen.QUICListeners > 1 {
		l.fault(fmt.Errorf("quic_listeners is %d (%s) and quic_bind takes a free port (%s): consecutive ports need a first one; name it or use one listener",
			c.Listen.QUICListeners, l.origin("quic_listeners"), l.origin("quic_bind")))
	}
	if last := port + c.Listen.QUICListeners - 1; last > maxPort {
		l.fault(fmt.Errorf("quic_listeners is %d (%s) and quic_bind begins at port %d (%s): the last port would be %d, beyond %d; lower one of them",
			c.Listen.QUICListeners, l.origin("quic_listeners"), port, l.origin("quic_bind"), last, maxPort))
	}
}

func (l *loader) checkTLS() {
	t := l.cfg.TLS
	if (t.CertFile == "") != (t.KeyFile == "") {
		given, missing := "tls_cert", "tls_key"
		if t.CertFile == "" {
			given, missing = missing, given
		}
		l.fault(fmt.Errorf("%s is set (%s) without %s: set both or neither", given, l.origin(given), missing))
	}
	if t.CertExport != "" && t.CertFile != "" {
		l.fault(fmt.Errorf("tls_cert_export (%s) writes the self-signed certificate, and with tls_cert (%s) there is none: unset one of them",
			l.origin("tls_cert_export"), l.origin("tls_cert")))
	}
	for _, needs := range []struct {
		key string
		on  bool
	}{{"tls_require_cert", t.RequireCert}, {"tls_client_cert_bind_subject", t.BindSubject}} {
		if needs.on && t.ClientCA == "" {
			l.fault(fmt.Errorf("%s is true (%s) without tls_client_ca: clients would be asked for no certificate; set tls_client_ca", needs.key, l.origin(needs.key)))
		}
	}
}

// adjustKeepAlive replaces an interval that could not keep a connection alive
// by a third of the idle timeout (wire 2.2).
func (l *loader) adjustKeepAlive() {
	listen := &l.cfg.Listen
	if listen.KeepAlive > 0 && listen.KeepAlive < listen.MaxIdleTimeout/2 {
		return
	}
	third := (listen.MaxIdleTimeout / 3).Truncate(time.Millisecond)
	l.warn("keepalive_ms is %d (%s), which cannot keep a connection alive with max_idle_timeout_ms of %d (%s): using %d",
		listen.KeepAlive.Milliseconds(), l.origin("keepalive_ms"), listen.MaxIdleTimeout.Milliseconds(), l.origin("max_idle_timeout_ms"), third.Milliseconds())
	listen.KeepAlive = third
}
