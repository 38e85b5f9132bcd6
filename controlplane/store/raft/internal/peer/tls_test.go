package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// An authority signs certificates for members on loopback.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, dir: t.TempDir(), key: key}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.write("ca.pem", "CERTIFICATE", a.sign(a.cert, &key.PublicKey))
	return a
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func (a *authority) files() TLSFiles {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey)
	return TLSFiles{
		Cert: a.write("cert.pem", "CERTIFICATE", cert), Key: a.write("key.pem", "EC PRIVATE KEY", der),
		CA: filepath.Join(a.dir, "ca.pem"),
	}
}

func TestMutualTLS(t *testing.T) {
	ours, others := newAuthority(t).files(), newAuthority(t).files()
	listener := newMember(t, 2, func(c *Config) { c.TLS, c.Token = ours, "" })
	http := listener.HTTP()
	dial := func(files TLSFiles) error {
		caller := newMember(t, 1, func(c *Config) {
			c.TLS, c.Token = files, ""
			c.Peers[2] = listener.Addr().String()
		})
		conn, err := caller.Dial(t.Context(), HTTP, 2)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		served, err := http.Accept()
		if err != nil {
			return err
		}
		if _, err := served.Write([]byte("x")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return errors.Join(err, served.Close())
	}
	if err := dial(ours); err != nil {
		t.Errorf("same CA: %v", err)
	}
	// The caller trusts the listener's CA, and shows a certificate of another.
	foreign := others
	foreign.CA = ours.CA
	for name, files := range map[string]TLSFiles{"other CA": others, "foreign certificate": foreign, "no TLS": {}} {
		if err := dial(files); err == nil {
			t.Errorf("%s: let in", name)
		}
		waitFor(t, func() bool { return slices.Contains(listener.refusals(), NoTLS) })
	}
}

func TestTLSFiles(t *testing.T) {
	whole := newAuthority(t).files()
	if err := whole.Validate(); err != nil {
		t.Errorf("whole: %v", err)
	}
	if err := (TLSFiles{}).Validate(); err != nil {
		t.Errorf("none: %v", err)
	}
	for name, f := range map[string]TLSFiles{
		"no CA":        {Cert: whole.Cert, Key: whole.Key},
		"no key":       {Cert: whole.Cert, CA: whole.CA},
		"only a CA":    {CA: whole.CA},
		"missing file": {Cert: whole.Cert + "x", Key: whole.Key, CA: whole.CA},
		"empty CA":     {Cert: whole.Cert, Key: whole.Key, CA: whole.Key},
	} {
		if err := f.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
