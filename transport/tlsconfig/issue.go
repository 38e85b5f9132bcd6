package tlsconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	// caLife and leafLife are how long issued certificates hold. Some
	// platforms accept no leaf of more than 825 days.
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// backdate allows for clocks that are behind.
	backdate = time.Hour
)

// serverHosts are the names and addresses of a server certificate.
func serverHosts(further []string) []string {
	return append([]string{"localhost", "127.0.0.1", "::1"}, further...)
}

// covers says that cert carries host, as written.
func covers(cert *x509.Certificate, host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return slices.ContainsFunc(cert.IPAddresses, ip.Equal)
	}
	return slices.Contains(cert.DNSNames, host)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

// template is a certificate for name, to be completed and signed.
func template(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Felix development"}, CommonName: name},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,

		BasicConstraintsValid: true,
	}, nil
}

// serverTemplate is a server's certificate for the local names and hosts.
func serverTemplate(hosts []string, now time.Time) (*x509.Certificate, error) {
	t, err := template("localhost", now, leafLife)
	if err != nil {
		return nil, err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range serverHosts(hosts) {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t, nil
}

// sign makes a certificate of t for key. Without a parent it signs itself.
func sign(t *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (tls.Certificate, error) {
	if parent == nil {
		parent, parentKey = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), parentKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("parse certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// SelfSigned makes a server certificate that nobody else has signed, for
// localhost, 127.0.0.1, ::1 and hosts. It serves where nobody has configured
// one; clients have to be given it as their CA, see [CertificatePEM]. It is
// not marked as a CA itself: some clients refuse that in a server.
func SelfSigned(hosts []string, now time.Time) (tls.Certificate, error) {
	t, err := serverTemplate(hosts, now)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	return sign(t, key, nil, nil)
}

// CertificatePEM is c's chain as PEM text, leaf first, without the key.
func CertificatePEM(c tls.Certificate) []byte {
	var out []byte
	for _, der := range c.Certificate {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
