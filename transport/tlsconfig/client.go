package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"
)

// ClientOptions describe the client's side. The zero value trusts the
// platform's authorities and presents no certificate.
type ClientOptions struct {
	// CAFile, CAPEM or Roots are the authorities to trust, at most one of
	// them; none means the platform's.
	CAFile string
	CAPEM  []byte
	Roots  *x509.CertPool

	// CertFile and KeyFile, or Certificate, are what the client presents to
	// a server that asks. The files are read again like a server's.
	CertFile, KeyFile string
	Certificate       *tls.Certificate

	// ServerName is the name the server's certificate must carry; empty
	// means the host that is dialled.
	ServerName string
	// OfferALPN offers ALPN, or [FelixALPN] if that is empty. Off, nothing is
	// offered, as original clients do (wire 2.1).
	OfferALPN bool
	ALPN      string

	// Reload, Now and Logger are as in [ServerOptions].
	Reload time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// NewClient reads the files and makes the configuration. An error names the
// file and what to do about it.
func NewClient(o ClientOptions) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: o.ServerName}
	if err := o.trust(c); err != nil {
		return nil, err
	}
	if o.OfferALPN {
		c.NextProtos = []string{FelixALPN}
		if o.ALPN != "" {
			c.NextProtos = []string{o.ALPN}
		}
	}
	pair, err := newKeyPair(o.CertFile, o.KeyFile, o.Certificate)
	if err != nil {
		return nil, err
	}
	if pair == nil {
		return c, nil
	}
	fresh, err := newReloaded("client certificate", pair, reloadOptions{o.Reload, o.Now, o.Logger})
	if err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return fresh.get(), nil
	}
	return c, nil
}

func (o ClientOptions) trust(c *tls.Config) error {
	given := 0
	for _, set := range []bool{o.CAFile != "", len(o.CAPEM) > 0, o.Roots != nil} {
		if set {
			given++
		}
	}
	if given > 1 {
		return errors.New("the trusted CA is given more than once: choose a file, PEM text or a pool")
	}
	if o.Roots != nil {
		c.RootCAs = o.Roots
		return nil
	}
	pool, err := readPool("CA", o.CAFile, o.CAPEM)
	c.RootCAs = pool
	return err
}
