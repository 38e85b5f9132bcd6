package quic

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/tlsconfig"
)

// The ALPN rule of wire 2.1.
func TestALPN(t *testing.T) {
	for _, c := range []struct {
		name    string
		require bool
		offer   []string
		accept  bool
		chosen  string
	}{
		{"offers none", false, nil, true, ""},
		{"offers ours", false, []string{"felix/1"}, true, "felix/1"},
		{"offers ours among others", false, []string{"h3", "felix/1"}, true, "felix/1"},
		{"offers others only", false, []string{"h3", "felix/2"}, false, ""},
		{"offers none, required", true, nil, false, ""},
		{"offers ours, required", true, []string{"felix/1"}, true, "felix/1"},
		{"offers others only, required", true, []string{"h3"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnds(t, nil, nil)
			cert := e.ca.ServerCertificate()
			conf, err := tlsconfig.NewServer(tlsconfig.ServerOptions{Certificate: &cert, RequireALPN: c.require})
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen("127.0.0.1:0", ListenOptions{TLS: conf})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d := e.newDialer(t, func(o *DialOptions) { o.TLS.NextProtos = c.offer })
			client, err := d.Dial(testContext(t), l.Addr().String())
			if !c.accept {
				var closed *transport.CloseError
				if !errors.As(err, &closed) || closed.Application || !strings.Contains(err.Error(), "application protocol") {
					t.Fatalf("dial: %v, want a refusal that speaks of the application protocol", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.Accept(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			if client.ALPN() != c.chosen || server.ALPN() != c.chosen {
				t.Errorf("negotiated %q and %q, want %q", client.ALPN(), server.ALPN(), c.chosen)
			}
		})
	}
}

func TestClientCertificates(t *testing.T) {
	e := newEnds(t, nil, nil)
	known, err := e.ca.IssueClient("alice")
	if err != nil {
		t.Fatal(err)
	}
	strangers, err := tlsconfig.NewDevCA(tlsconfig.DevOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := strangers.IssueClient("mallory")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		require bool
		present *tls.Certificate
		accept  bool
	}{
		{"optional, none", false, nil, true},
		{"optional, known", false, &known, true},
		{"optional, unknown", false, &unknown, false},
		{"required, none", true, nil, false},
		{"required, known", true, &known, true},
		{"required, unknown", true, &unknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert := e.ca.ServerCertificate()
			conf, err := tlsconfig.NewServer(tlsconfig.ServerOptions{
				Certificate: &cert, ClientCAPEM: e.ca.CAPEM(), RequireClientCert: c.require,
			})
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen("127.0.0.1:0", ListenOptions{TLS: conf})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			d := e.newDialer(t, func(o *DialOptions) {
				// A client that heeds the server's list of authorities would
				// present none rather than an unknown one.
				o.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if c.present == nil {
						return new(tls.Certificate), nil
					}
					return c.present, nil
				}
			})
			client, err := d.Dial(testContext(t), l.Addr().String())
			if !c.accept {
				// The client may be done before the server has looked.
				if err == nil {
					waitDone(t, client.Context())
					_, err = client.OpenStream(testContext(t))
				}
				var closed *transport.CloseError
				if !errors.As(err, &closed) || closed.Application || !closed.Remote {
					t.Fatalf("client is told %v, want a refusal by the server", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.Accept(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			seen := server.PeerCertificates()
			switch {
			case c.present == nil && len(seen) != 0:
				t.Errorf("server sees %d certificates, want none", len(seen))
			case c.present != nil && (len(seen) == 0 || !seen[0].Equal(c.present.Leaf)):
				t.Errorf("server does not see the client's certificate")
			}
		})
	}
}

// The server's name is the dialled host where none is configured.
func TestServerName(t *testing.T) {
	e := newEnds(t, nil, func(o *DialOptions) { o.TLS.ServerName = "" })
	e.connect(t) // 127.0.0.1 is in the certificate
	wrong := e.newDialer(t, func(o *DialOptions) { o.TLS.ServerName = "example.org" })
	_, err := wrong.Dial(testContext(t), e.addr())
	var name interface{ Error() string }
	if err == nil || !errors.As(err, &name) || !strings.Contains(err.Error(), "example.org") {
		t.Errorf("dial for another name: %v, want an error that says so", err)
	}
}

func TestSilentPeer(t *testing.T) {
	hole, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	e := newEnds(t, nil, func(o *DialOptions) { o.HandshakeTimeout = 50 * time.Millisecond })
	_, err = e.dialer.Dial(testContext(t), hole.LocalAddr().String())
	if !errors.Is(err, transport.ErrHandshakeTimeout) {
		t.Errorf("dial to a silent port: %v, want ErrHandshakeTimeout", err)
	}
}
