package tlsconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func ecdsaKey(t *testing.T, c tls.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, ok := c.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("key is a %T", c.PrivateKey)
	}
	return key
}

// New handshakes get the certificate the files hold, half a minute after at
// the latest; files that cannot be used change nothing and are told of once.
func TestServerReadsFilesAgain(t *testing.T) {
	ca := newCA(t, DevOptions{})
	client, err := ca.Client()
	if err != nil {
		t.Fatal(err)
	}
	next := func() tls.Certificate {
		t.Helper()
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		c, err := ca.issueServer(key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir := t.TempDir()
	first := next()
	certFile, keyFile := writePair(t, dir, first)
	now := newClock()
	var log bytes.Buffer
	server, err := NewServer(ServerOptions{
		CertFile: certFile, KeyFile: keyFile, Now: now.Now, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want tls.Certificate, lines int) {
		t.Helper()
		_, seen, err := handshake(t, server, client)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if !seen.PeerCertificates[0].Equal(want.Leaf) {
			t.Errorf("%s: another certificate is served", when)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%s: %d lines logged, want %d:\n%s", when, got, lines, &log)
		}
	}
	expect("at first", first, 0)

	second := next()
	writePair(t, dir, second)
	now.move(DefaultReload - time.Second)
	expect("before the time", first, 0)
	now.move(time.Second)
	expect("in time", second, 0)

	// The key without its certificate, as while files are being replaced.
	third := next()
	key, err := keyPEM(ecdsaKey(t, third))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "server.key", key)
	for range 3 {
		now.move(DefaultReload)
		expect("half replaced", second, 1)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		now.move(DefaultReload)
		expect("removed", second, 2)
	}
	writePair(t, dir, third)
	now.move(DefaultReload)
	expect("whole again", third, 3)
	now.move(DefaultReload)
	expect("unchanged", third, 3)
	if !strings.Contains(log.String(), certFile) {
		t.Errorf("the log does not name the file: %s", &log)
	}
}

// The authorities of clients are read again, too.
func TestServerReadsClientCAAgain(t *testing.T) {
	ca, other := newCA(t, DevOptions{}), newCA(t, DevOptions{})
	cert := ca.ServerCertificate()
	file := writeFile(t, t.TempDir(), "clients.pem", ca.CAPEM())
	now := newClock()
	server, err := NewServer(ServerOptions{Certificate: &cert, ClientCAFile: file, RequireClientCert: true, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	clientOf := func(issuer *DevCA) *tls.Config {
		t.Helper()
		mine, err := issuer.IssueClient("someone")
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(ClientOptions{CAPEM: ca.CAPEM(), Certificate: &mine})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ours, theirs := clientOf(ca), clientOf(other)
	try := func(when string, c *tls.Config, want bool) {
		t.Helper()
		s, _, err := handshake(t, server, c)
		if (err == nil) != want {
			t.Errorf("%s: handshake %v, want success %v", when, err, want)
		}
		if err == nil && s.VerifiedChains[0][0].Subject.CommonName != "someone" {
			t.Errorf("%s: server sees %v", when, s.VerifiedChains[0][0].Subject)
		}
	}
	try("before", ours, true)
	try("before", theirs, false)
	writeFile(t, filepath.Dir(file), "clients.pem", other.CAPEM())
	now.move(DefaultReload)
	try("after", ours, false)
	try("after", theirs, true)
}

func TestServerALPN(t *testing.T) {
	ca := newCA(t, DevOptions{})
	cert := ca.ServerCertificate()
	for _, c := range []struct {
		require bool
		own     string
		offer   []string
		chosen  string
		accept  bool
	}{
		{false, "", nil, "", true},
		{false, "", []string{"felix/1"}, "felix/1", true},
		{false, "", []string{"h2", "felix/1"}, "felix/1", true},
		{false, "", []string{"h2"}, "", false},
		{true, "", []string{"felix/1"}, "felix/1", true},
		{true, "", []string{"h2"}, "", false},
		{false, "felix-internal/1", []string{"felix-internal/1"}, "felix-internal/1", true},
		{false, "felix-internal/1", []string{"felix/1"}, "", false},
	} {
		server, err := NewServer(ServerOptions{Certificate: &cert, RequireALPN: c.require, ALPN: c.own})
		if err != nil {
			t.Fatal(err)
		}
		client, err := ca.Client()
		if err != nil {
			t.Fatal(err)
		}
		client.NextProtos = c.offer
		_, seen, err := handshake(t, server, client)
		if (err == nil) != c.accept || err == nil && seen.NegotiatedProtocol != c.chosen {
			t.Errorf("%+v: chosen %q, %v", c, seen.NegotiatedProtocol, err)
		}
	}
}

func TestOnlyTLS13(t *testing.T) {
	ca := newCA(t, DevOptions{})
	server, err := ca.Server()
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client()
	if err != nil {
		t.Fatal(err)
	}
	if client.MinVersion != tls.VersionTLS13 {
		t.Errorf("client's lowest version is %#x", client.MinVersion)
	}
	client.MinVersion, client.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, _, err := handshake(t, server, client); err == nil {
		t.Error("the server speaks TLS 1.2")
	}
}

// An error says which file and what to do.
func TestServerErrors(t *testing.T) {
	ca := newCA(t, DevOptions{})
	cert := ca.ServerCertificate()
	dir := t.TempDir()
	certFile, keyFile := writePair(t, dir, cert)
	other, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyPEM(other)
	if err != nil {
		t.Fatal(err)
	}
	otherKey := writeFile(t, dir, "other.key", text)
	empty := writeFile(t, dir, "empty.pem", nil)
	missing := filepath.Join(dir, "missing.pem")
	for _, c := range []struct {
		name string
		o    ServerOptions
		says []string
		is   error
	}{
		{"nothing", ServerOptions{}, []string{"set a certificate file"}, nil},
		{"no key", ServerOptions{CertFile: certFile}, []string{certFile, "set both"}, nil},
		{"no certificate", ServerOptions{KeyFile: keyFile}, []string{keyFile, "set both"}, nil},
		{"both ways", ServerOptions{CertFile: certFile, KeyFile: keyFile, Certificate: &cert}, []string{"choose one"}, nil},
		{"missing", ServerOptions{CertFile: missing, KeyFile: keyFile}, []string{missing, "create it"}, fs.ErrNotExist},
		{"no pair", ServerOptions{CertFile: certFile, KeyFile: otherKey}, []string{certFile, otherKey, "pair"}, nil},
		{"not PEM", ServerOptions{CertFile: empty, KeyFile: keyFile}, []string{empty, "PEM"}, nil},
		{"client CA empty", ServerOptions{Certificate: &cert, ClientCAFile: empty}, []string{empty, "CERTIFICATE"}, nil},
		{"client CA missing", ServerOptions{Certificate: &cert, ClientCAFile: missing}, []string{missing}, fs.ErrNotExist},
		{"required of nobody", ServerOptions{Certificate: &cert, RequireClientCert: true}, []string{"client CA"}, nil},
	} {
		_, err := NewServer(c.o)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q does not say %q", c.name, err, s)
			}
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v is not %v", c.name, err, c.is)
		}
	}
}
