package tlsconfig

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// handshake joins two configurations and returns what each saw.
func handshake(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, err error) {
	t.Helper()
	if client.ServerName == "" {
		client = client.Clone()
		client.ServerName = "localhost"
	}
	a, b := connected(t)
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, c := tls.Server(a, server), tls.Client(b, client)
	served := make(chan error, 1)
	go func() { served <- s.HandshakeContext(ctx) }()
	err = c.HandshakeContext(ctx)
	// A client may be done while the server still objects to it.
	err = errors.Join(<-served, err)
	return s.ConnectionState(), c.ConnectionState(), err
}

// connected are the ends of a TCP connection, which, unlike a pipe, takes what
// nobody reads any more.
func connected(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func writeFile(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newCA(t *testing.T, o DevOptions) *DevCA {
	t.Helper()
	ca, err := NewDevCA(o)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// writePair writes a certificate and its key.
func writePair(t *testing.T, dir string, c tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := keyPEM(ecdsaKey(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, dir, "server.pem", CertificatePEM(c)), writeFile(t, dir, "server.key", key)
}
