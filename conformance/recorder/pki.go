package recorder

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
	"time"
)

// A PKI is a certificate authority and one server certificate for localhost
// and 127.0.0.1 under it.
type PKI struct {
	// CAPEM is what a client must trust.
	CAPEM  []byte
	server tls.Certificate
}

// NewPKI makes a fresh authority, valid for a day.
func NewPKI() (*PKI, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("authority key: %w", err)
	}
	notBefore := time.Now().Add(-time.Hour)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "felix conformance"},
		NotBefore:             notBefore,
		NotAfter:              notBefore.Add(25 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("authority certificate: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("server key: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    notBefore,
		NotAfter:     ca.NotAfter,
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	return &PKI{
		CAPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		server: tls.Certificate{Certificate: [][]byte{leafDER, caDER}, PrivateKey: key},
	}, nil
}

// config accepts any client: with ALPN felix/1 where the client offers it,
// with none where it offers none (wire 2.1).
func (p *PKI) config(hello func(*tls.ClientHelloInfo)) *tls.Config {
	base := &tls.Config{Certificates: []tls.Certificate{p.server}, MinVersion: tls.VersionTLS13}
	base.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		hello(info)
		c := base.Clone()
		c.GetConfigForClient = nil
		if len(info.SupportedProtos) > 0 {
			c.NextProtos = []string{"felix/1"}
		}
		return c, nil
	}
	return base
}
