// Package pki makes the certificate authority of one benchmark run, which
// every encrypted server of the run is trusted by.
package pki

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/felixlog/felix/transport/tlsconfig"
)

// serverName is the name every server's certificate carries.
const serverName = "localhost"

// Files names PEM files. It crosses process boundaries as JSON.
type Files struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Create makes an authority and a server certificate in dir.
func Create(dir string) (Files, error) {
	ca, err := tlsconfig.LoadDevCA(dir, tlsconfig.DevOptions{Hosts: []string{serverName, "127.0.0.1"}, Now: time.Now})
	if err != nil {
		return Files{}, fmt.Errorf("create authority: %w", err)
	}
	return Files{CA: ca.CAFile(), Cert: ca.CertFile(), Key: ca.KeyFile()}, nil
}

// Server is the configuration of a TLS 1.3 server with this certificate.
func (f Files) Server() (*tls.Config, error) {
	cfg, err := tlsconfig.NewServer(tlsconfig.ServerOptions{CertFile: f.Cert, KeyFile: f.Key})
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	return cfg, nil
}

// Client is the configuration of a TLS 1.3 client that trusts the authority.
func (f Files) Client() (*tls.Config, error) {
	cfg, err := tlsconfig.NewClient(tlsconfig.ClientOptions{CAFile: f.CA, ServerName: serverName})
	if err != nil {
		return nil, fmt.Errorf("trust of a client: %w", err)
	}
	return cfg, nil
}
