package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLSFiles are the PEM files of mutual TLS: all three or none.
type TLSFiles struct {
	Cert, Key string // of this member; the certificate names its host
	CA        string // that signs the certificates of all members
}

// Set says whether TLS is used.
func (f TLSFiles) Set() bool { return f != TLSFiles{} }

// Validate checks that the files are there and fit together.
func (f TLSFiles) Validate() error {
	if !f.Set() {
		return nil
	}
	if f.Cert == "" || f.Key == "" || f.CA == "" {
		return errors.New("TLS between members needs a certificate, its key and a CA: set all three or none")
	}
	_, _, err := f.load()
	return err
}

func (f TLSFiles) load() (tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return cert, nil, fmt.Errorf("load the certificate of the peer listener: %w", err)
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return cert, nil, fmt.Errorf("load the CA of the peers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return cert, nil, fmt.Errorf("load the CA of the peers: %s holds no certificate", f.CA)
	}
	return cert, pool, nil
}

func (f TLSFiles) server() (*tls.Config, error) {
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, nil
}

func (f TLSFiles) client(host string) (*tls.Config, error) {
	cert, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: host,
	}, nil
}
