package tlsconfig

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// DevOptions configure a [DevCA].
type DevOptions struct {
	// Hosts are further names and addresses of the server certificate,
	// beside localhost, 127.0.0.1 and ::1.
	Hosts []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o DevOptions) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// A DevCA is a certificate authority for development and tests, with one
// server certificate (ECDSA P-256). It is either kept in a directory, see
// [LoadDevCA], or only in memory, see [NewDevCA].
type DevCA struct {
	dir     string
	options DevOptions
	ca      *x509.Certificate
	key     *ecdsa.PrivateKey // nil: nothing can be issued
	server  tls.Certificate
}

// NewDevCA makes an authority and a server certificate in memory.
func NewDevCA(o DevOptions) (*DevCA, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	ca, err := newAuthority(key, o.now())
	if err != nil {
		return nil, err
	}
	c := &DevCA{options: o, ca: ca, key: key}
	if key, err = newKey(); err != nil {
		return nil, err
	}
	if c.server, err = c.issueServer(key); err != nil {
		return nil, err
	}
	return c, nil
}

// newAuthority makes the certificate of an authority with this key. Made
// twice, either verifies what the key signed.
func newAuthority(key *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, error) {
	t, err := template("Felix development CA", now, caLife)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.MaxPathLenZero = true, true
	t.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign CA certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func (c *DevCA) issueServer(key *ecdsa.PrivateKey) (tls.Certificate, error) {
	t, err := serverTemplate(c.options.Hosts, c.options.now())
	if err != nil {
		return tls.Certificate{}, err
	}
	return sign(t, key, c.ca, c.key)
}

// IssueClient issues a client certificate with name as its common name and
// DNS name. It fails where the authority's key is not at hand.
func (c *DevCA) IssueClient(name string) (tls.Certificate, error) {
	if c.key == nil {
		return tls.Certificate{}, c.errNoKey()
	}
	t, err := template(name, c.options.now(), leafLife)
	if err != nil {
		return tls.Certificate{}, err
	}
	t.DNSNames = []string{name}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	key, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	return sign(t, key, c.ca, c.key)
}

// CAPEM is the authority's certificate as PEM text, for clients to trust.
func (c *DevCA) CAPEM() []byte {
	return CertificatePEM(tls.Certificate{Certificate: [][]byte{c.ca.Raw}})
}

// ServerCertificate is the server's certificate and key.
func (c *DevCA) ServerCertificate() tls.Certificate { return c.server }

// Server is the configuration of a server with the authority's certificate,
// that asks for no client certificate.
func (c *DevCA) Server() (*tls.Config, error) {
	return NewServer(ServerOptions{Certificate: &c.server, Now: c.options.Now})
}

// Client is the configuration of a client that trusts the authority and
// expects a server called localhost.
func (c *DevCA) Client() (*tls.Config, error) {
	return NewClient(ClientOptions{CAPEM: c.CAPEM(), ServerName: "localhost", Now: c.options.Now})
}

// serves says whether the server certificate can be used: signed by the
// authority, for every host, and not about to run out.
func (c *DevCA) serves() bool {
	leaf := c.server.Leaf
	if leaf == nil || expiring(leaf, c.options.now()) || leaf.CheckSignatureFrom(c.ca) != nil {
		return false
	}
	return !slices.ContainsFunc(serverHosts(c.options.Hosts), func(host string) bool {
		return !covers(leaf, host)
	})
}

// expiring says that less than a tenth of cert's life is left.
func expiring(cert *x509.Certificate, now time.Time) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotAfter.Sub(now) < life/10 || now.Before(cert.NotBefore)
}
