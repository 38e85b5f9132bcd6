package tlsconfig

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func load(t *testing.T, dir string, o DevOptions) *DevCA {
	t.Helper()
	ca, err := LoadDevCA(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	// Whatever happened, what is in the directory works.
	server, err := NewServer(ServerOptions{CertFile: ca.CertFile(), KeyFile: ca.KeyFile(), Now: o.Now})
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(ClientOptions{CAFile: ca.CAFile()})
	if err != nil {
		t.Fatal(err)
	}
	client.Time = o.Now
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		c := client.Clone()
		c.ServerName = host
		if _, _, err := handshake(t, server, c); err != nil {
			t.Errorf("handshake with %s: %v", host, err)
		}
	}
	return ca
}

func TestDevCAIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "pki")
	first := load(t, dir, DevOptions{})
	if first.server.Leaf.PublicKeyAlgorithm != x509.ECDSA || ecdsaKey(t, first.server).Curve != elliptic.P256() {
		t.Error("the key is not ECDSA P-256")
	}
	modes := map[string]fs.FileMode{"ca.pem": 0o644, "ca.key": 0o600, "server.pem": 0o644, "server.key": 0o600}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := modes[e.Name()]; !ok || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
	if len(entries) != len(modes) {
		t.Errorf("%d files are left in the directory", len(entries))
	}
	again := load(t, dir, DevOptions{})
	if !again.ca.Equal(first.ca) || !again.server.Leaf.Equal(first.server.Leaf) {
		t.Error("a second start makes new certificates")
	}
	if again.CAFile() != filepath.Join(dir, "ca.pem") {
		t.Errorf("CA file is %s", again.CAFile())
	}
	if memory := newCA(t, DevOptions{}); memory.CAFile() != "" || memory.CertFile() != "" || memory.KeyFile() != "" {
		t.Error("a CA in memory names files")
	}
}

// The server's certificate is issued anew when it would not do, and the CA
// stays what clients trust.
func TestDevCAIssuesAnew(t *testing.T) {
	dir := t.TempDir()
	now := newClock()
	o := DevOptions{Now: now.Now}
	first := load(t, dir, o)

	o.Hosts = []string{"broker.local", "192.0.2.7"}
	wider := load(t, dir, o)
	if !wider.ca.Equal(first.ca) || wider.server.Leaf.Equal(first.server.Leaf) {
		t.Error("want the same CA and a new server certificate for new hosts")
	}
	if !slices.Contains(wider.server.Leaf.DNSNames, "broker.local") || wider.server.Leaf.VerifyHostname("192.0.2.7") != nil {
		t.Errorf("names %v, addresses %v", wider.server.Leaf.DNSNames, wider.server.Leaf.IPAddresses)
	}
	// Fewer hosts are covered already.
	if narrow := load(t, dir, DevOptions{Now: now.Now}); !narrow.server.Leaf.Equal(wider.server.Leaf) {
		t.Error("a certificate that covers all hosts is replaced")
	}

	now.move(leafLife - leafLife/5)
	if kept := load(t, dir, o); !kept.server.Leaf.Equal(wider.server.Leaf) {
		t.Error("replaced long before its end")
	}
	now.move(leafLife / 8)
	renewed := load(t, dir, o)
	if !renewed.ca.Equal(first.ca) || renewed.server.Leaf.Equal(wider.server.Leaf) {
		t.Error("want the same CA and a new server certificate before the old one runs out")
	}

	now.move(caLife - leafLife)
	last := load(t, dir, o)
	if last.ca.Equal(first.ca) || !last.key.Equal(first.key) {
		t.Error("want a new CA certificate of the same key before the old one runs out")
	}
}

func TestDevCAMendsItself(t *testing.T) {
	dir := t.TempDir()
	first := load(t, dir, DevOptions{})
	file := func(name string) string { return filepath.Join(dir, name) }
	remove := func(names ...string) {
		t.Helper()
		for _, n := range names {
			if err := os.Remove(file(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove("server.pem")
	remove("server.key")
	if ca := load(t, dir, DevOptions{}); !ca.ca.Equal(first.ca) {
		t.Error("a new CA for want of a server certificate")
	}
	writeFile(t, dir, "server.pem", []byte("damaged"))
	load(t, dir, DevOptions{})
	// After a crash between the two files.
	remove("ca.pem")
	if ca := load(t, dir, DevOptions{}); !ca.key.Equal(first.key) {
		t.Error("the CA's key is not kept")
	}
	if err := os.Chmod(file("ca.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	load(t, dir, DevOptions{})
	if info, err := os.Stat(file("ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a key others can read stays so: %v, %v", info.Mode(), err)
	}
	// Without the CA's key it serves as long as it can, and issues nothing.
	remove("ca.key")
	ca := load(t, dir, DevOptions{})
	expectSays(t, "issue without key", second(ca.IssueClient("x")), "ca.key", "restore it, or delete the directory")
	expectSays(t, "new host without key", second(LoadDevCA(dir, DevOptions{Hosts: []string{"new"}})), dir, "ca.key")
}

func second[T any](_ T, err error) error { return err }

func expectSays(t *testing.T, what string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %q does not say %q", what, err, s)
		}
	}
}

func TestDevCARefusesDamage(t *testing.T) {
	for name, text := range map[string]string{
		"ca.pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"ca.key": "nothing",
	} {
		dir := t.TempDir()
		load(t, dir, DevOptions{})
		writeFile(t, dir, name, []byte(text))
		expectSays(t, name, second(LoadDevCA(dir, DevOptions{})), name, "delete the directory")
	}
	// Two CAs mixed up.
	dir, other := t.TempDir(), t.TempDir()
	load(t, dir, DevOptions{})
	load(t, other, DevOptions{})
	stray, err := os.ReadFile(filepath.Join(other, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "ca.pem", stray)
	expectSays(t, "mixed up", second(LoadDevCA(dir, DevOptions{})), "do not belong together")
}

// Processes that start at the same time end up with one CA.
func TestDevCALoadedTogether(t *testing.T) {
	dir := t.TempDir()
	const processes = 8
	cas := make([]*DevCA, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			ca, err := LoadDevCA(dir, DevOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			cas[i] = ca
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	kept := load(t, dir, DevOptions{})
	for _, ca := range cas {
		if !ca.key.Equal(kept.key) {
			t.Error("a process has a CA of its own")
		}
		// Each one's server is trusted by whoever has the file.
		server, err := ca.Server()
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewClient(ClientOptions{CAFile: kept.CAFile()})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := handshake(t, server, client); err != nil {
			t.Error(err)
		}
	}
}

func TestSelfSigned(t *testing.T) {
	cert, err := SelfSigned([]string{"felix.test"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(ServerOptions{Certificate: &cert})
	if err != nil {
		t.Fatal(err)
	}
	text := CertificatePEM(cert)
	if cert.Leaf.IsCA {
		t.Error("a server's certificate is marked as a CA")
	}
	if bytes.Contains(text, []byte("PRIVATE")) {
		t.Error("the exported text holds the key")
	}
	for _, host := range []string{"localhost", "felix.test"} {
		client, err := NewClient(ClientOptions{CAPEM: text, ServerName: host})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := handshake(t, server, client); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
