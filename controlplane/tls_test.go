package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// A ca signs certificates.
type ca struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &ca{t, cert, key}
}

func (c *ca) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(c.cert)
	return p
}

// issue writes a certificate of that serial number and its key to files.
func (c *ca) issue(serial int64, certFile, keyFile string) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, c.cert, key.Public(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	writePEM(c.t, keyFile, "PRIVATE KEY", text)
	writePEM(c.t, certFile, "CERTIFICATE", der)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serialOf is the number of the certificate that a new connection is shown.
func serialOf(t *testing.T, addr string, pool *x509.CertPool) int64 {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{RootCAs: pool}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// The API's certificate is read again when its files change; one that cannot be
// read leaves the one before.
func TestCertificateIsReadAgain(t *testing.T) {
	authority := newCA(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.issue(10, certFile, keyFile)
	var ahead atomic.Int64 // of the clock
	o := quick(memoryStore(t))
	o.TLSCert, o.TLSKey = certFile, keyFile
	o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s := start(t, o)
	later := func() { ahead.Add(int64(2 * time.Second)) }

	c := client(t)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: authority.pool()}
	if status, _ := get(t, c, "https://"+s.Addr()+"/v1/system/live"); status != 200 {
		t.Fatal(status)
	}
	if n := serialOf(t, s.Addr(), authority.pool()); n != 10 {
		t.Fatalf("certificate %d", n)
	}
	authority.issue(11, certFile, keyFile)
	later()
	if n := serialOf(t, s.Addr(), authority.pool()); n != 11 {
		t.Errorf("after the rotation certificate %d is shown", n)
	}
	if err := os.WriteFile(certFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	later()
	if n := serialOf(t, s.Addr(), authority.pool()); n != 11 {
		t.Errorf("after a broken rotation certificate %d is shown", n)
	}
	authority.issue(12, certFile, keyFile)
	later()
	if n := serialOf(t, s.Addr(), authority.pool()); n != 12 {
		t.Errorf("after it was put right certificate %d is shown", n)
	}
	old := tls.Dialer{Config: &tls.Config{RootCAs: authority.pool(), MaxVersion: tls.VersionTLS11}}
	if conn, err := old.DialContext(t.Context(), "tcp", s.Addr()); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// With a client CA, bootstrap serves only who presents a certificate of it.
func TestBootstrapAsksForACertificate(t *testing.T) {
	authority, stranger := newCA(t), newCA(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority.issue(1, file("cert.pem"), file("key.pem"))
	writePEM(t, file("ca.pem"), "CERTIFICATE", authority.cert.Raw)
	o := quick(memoryStore(t))
	o.Bootstrap.Enabled, o.Bootstrap.Token = true, "secret"
	o.Bootstrap.TLSCert, o.Bootstrap.TLSKey, o.Bootstrap.TLSClientCA = file("cert.pem"), file("key.pem"), file("ca.pem")
	s := start(t, o)
	url := "https://" + s.BootstrapAddr() + "/internal/bootstrap/tenants/t/initialize"
	with := func(by *ca) *http.Client {
		c := client(t)
		config := &tls.Config{RootCAs: authority.pool()}
		if by != nil {
			by.issue(2, file("client.pem"), file("client-key.pem"))
			pair, err := tls.LoadX509KeyPair(file("client.pem"), file("client-key.pem"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		c.Transport.(*http.Transport).TLSClientConfig = config
		return c
	}
	if status, _ := get(t, with(authority), url); status != 405 {
		t.Errorf("with a certificate: %d", status)
	}
	for name, c := range map[string]*http.Client{"none": with(nil), "a stranger's": with(stranger)} {
		res, err := c.Get(url)
		if err == nil {
			_ = res.Body.Close()
			t.Errorf("with %s: %d", name, res.StatusCode)
		}
	}
}
