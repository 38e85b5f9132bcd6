package node

import (
	"crypto/tls"
	"fmt"
	"os"

	"github.com/felixlog/felix/transport/tlsconfig"
)

// selfSigned makes the certificate of a node that was given none, and writes
// it where clients may pick it up (broker 14.2). It changes with every start.
func selfSigned(o *Options) (*tls.Certificate, error) {
	cert, err := tlsconfig.SelfSigned(nil, o.Clock.Now())
	if err != nil {
		return nil, err
	}
	o.Logger.Warn("no certificate configured: presenting a self-signed one for localhost; set tls_cert and tls_key")
	if path := o.Config.TLS.CertExport; path != "" {
		if err := os.WriteFile(path, tlsconfig.CertificatePEM(cert), 0o644); err != nil {
			return nil, fmt.Errorf("export certificate: %w", err)
		}
	}
	return &cert, nil
}
