package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

func TestClientTrust(t *testing.T) {
	ca := newCA(t, DevOptions{Hosts: []string{"broker.example"}})
	server, err := ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, t.TempDir(), "ca.pem", ca.CAPEM())
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.CAPEM())
	for _, c := range []struct {
		name   string
		o      ClientOptions
		accept bool
	}{
		{"file", ClientOptions{CAFile: file}, true},
		{"text", ClientOptions{CAPEM: ca.CAPEM()}, true},
		{"pool", ClientOptions{Roots: pool}, true},
		{"another name of it", ClientOptions{CAFile: file, ServerName: "broker.example"}, true},
		{"no name of it", ClientOptions{CAFile: file, ServerName: "elsewhere.example"}, false},
		{"the platform's", ClientOptions{}, false},
		{"another CA", ClientOptions{CAPEM: newCA(t, DevOptions{}).CAPEM()}, false},
	} {
		client, err := NewClient(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := handshake(t, server, client); (err == nil) != c.accept {
			t.Errorf("%s: %v, want success %v", c.name, err, c.accept)
		}
	}
}

// By default a client offers no protocol, as the original ones do.
func TestClientOffersALPNOnRequest(t *testing.T) {
	for want, o := range map[string]ClientOptions{
		"":                 {ALPN: "ignored"},
		"felix/1":          {OfferALPN: true},
		"felix-internal/1": {OfferALPN: true, ALPN: "felix-internal/1"},
	} {
		c, err := NewClient(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.NextProtos, ","); got != want {
			t.Errorf("offers %q, want %q", got, want)
		}
	}
}

// A client's certificate is read again as a server's is.
func TestClientCertificateFromFiles(t *testing.T) {
	ca := newCA(t, DevOptions{})
	cert := ca.ServerCertificate()
	server, err := NewServer(ServerOptions{Certificate: &cert, ClientCAPEM: ca.CAPEM()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string) (certFile, keyFile string) {
		t.Helper()
		c, err := ca.IssueClient(name)
		if err != nil {
			t.Fatal(err)
		}
		return writePair(t, dir, c)
	}
	certFile, keyFile := put("first")
	now := newClock()
	client, err := NewClient(ClientOptions{CAPEM: ca.CAPEM(), CertFile: certFile, KeyFile: keyFile, Now: now.Now, Reload: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		seen, _, err := handshake(t, server, client)
		if err != nil {
			t.Fatal(err)
		}
		if got := name(seen); got != want {
			t.Errorf("server sees %q, want %q", got, want)
		}
	}
	expect("first")
	put("second")
	now.move(59 * time.Second)
	expect("first")
	now.move(time.Second)
	expect("second")
}

func name(s tls.ConnectionState) string {
	if len(s.VerifiedChains) == 0 {
		return ""
	}
	return s.VerifiedChains[0][0].Subject.CommonName
}

func TestClientErrors(t *testing.T) {
	dir := t.TempDir()
	empty := writeFile(t, dir, "empty.pem", nil)
	for name, c := range map[string]struct {
		o    ClientOptions
		says string
	}{
		"missing CA":     {ClientOptions{CAFile: dir + "/none.pem"}, "none.pem does not exist"},
		"empty CA":       {ClientOptions{CAFile: empty}, "holds no certificate"},
		"nonsense CA":    {ClientOptions{CAPEM: []byte("hello")}, "CA text holds no certificate"},
		"two CAs":        {ClientOptions{CAFile: empty, CAPEM: []byte("x")}, "more than once"},
		"half a pair":    {ClientOptions{CertFile: empty}, "set both"},
		"unusable files": {ClientOptions{CertFile: empty, KeyFile: empty}, "do not make a pair"},
	} {
		if _, err := NewClient(c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
