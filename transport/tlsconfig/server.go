package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DefaultReload is how often certificate files are read again (broker 14.2).
const DefaultReload = 30 * time.Second

// ServerOptions describe the server's side. One of CertFile with KeyFile, or
// Certificate, is required.
type ServerOptions struct {
	// CertFile and KeyFile are PEM files, leaf first. They are read again
	// every Reload; new handshakes get what they hold then.
	CertFile, KeyFile string
	// Certificate is a certificate held in memory.
	Certificate *tls.Certificate

	// ClientCAFile or ClientCAPEM, if set, are the authorities of client
	// certificates: a client may present one, and what it presents must be
	// signed by them. The file is read again like the others.
	ClientCAFile string
	ClientCAPEM  []byte
	// RequireClientCert refuses clients that present none.
	RequireClientCert bool

	// ALPN is the protocol to select; empty means [FelixALPN].
	ALPN string
	// RequireALPN refuses clients that offer no protocol, as the original
	// ones do.
	RequireALPN bool

	// Reload is how old what was read may be; 0 means [DefaultReload].
	Reload time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger is told of files that cannot be used, once for each reason, and
	// of their recovery. Nil is silent.
	Logger *slog.Logger
}

// NewServer reads the files and makes the configuration. An error names the
// file and what to do about it.
func NewServer(o ServerOptions) (*tls.Config, error) {
	load, err := o.loader()
	if err != nil {
		return nil, err
	}
	fresh, err := newReloaded("server certificate", load, reloadOptions{o.Reload, o.Now, o.Logger})
	if err != nil {
		return nil, err
	}
	// QUIC refuses a handshake in which only one side speaks ALPN (RFC 9001,
	// 8.1), so whether a client offers any decides which configuration it
	// meets. The outer one is never used for a handshake by itself.
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			s := fresh.get()
			if len(hello.SupportedProtos) == 0 && !o.RequireALPN {
				return s.silent, nil
			}
			return s.named, nil
		},
	}, nil
}

// serverSet is one state of the files, as configurations for clients that
// offer protocols and for those that do not.
type serverSet struct{ named, silent *tls.Config }

func (o ServerOptions) loader() (func() (*serverSet, error), error) {
	pair, err := newKeyPair(o.CertFile, o.KeyFile, o.Certificate)
	if err != nil {
		return nil, err
	}
	if pair == nil {
		return nil, errors.New("no server certificate: set a certificate file and its key file")
	}
	if o.RequireClientCert && o.ClientCAFile == "" && len(o.ClientCAPEM) == 0 {
		return nil, errors.New("client certificates are required but no client CA is set: name the file of the authority that signs them")
	}
	alpn := o.ALPN
	if alpn == "" {
		alpn = FelixALPN
	}
	return func() (*serverSet, error) {
		cert, err := pair()
		if err != nil {
			return nil, err
		}
		roots, err := readPool("client CA", o.ClientCAFile, o.ClientCAPEM)
		if err != nil {
			return nil, err
		}
		named := serverConfig(cert, roots, o.RequireClientCert)
		silent := named.Clone()
		named.NextProtos = []string{alpn}
		return &serverSet{named: named, silent: silent}, nil
	}, nil
}

func serverConfig(cert *tls.Certificate, clients *x509.CertPool, require bool) *tls.Config {
	c := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*cert},
		// A resumed session would outlive a change of the files, and saves no
		// time worth having (one round trip either way).
		SessionTicketsDisabled: true,
	}
	switch {
	case clients == nil:
	case require:
		c.ClientCAs, c.ClientAuth = clients, tls.RequireAndVerifyClientCert
	default:
		c.ClientCAs, c.ClientAuth = clients, tls.VerifyClientCertIfGiven
	}
	return c
}

// newKeyPair returns how to get a certificate, from files or memory; nil if
// neither is given.
func newKeyPair(certFile, keyFile string, inMemory *tls.Certificate) (func() (*tls.Certificate, error), error) {
	switch {
	case inMemory != nil && (certFile != "" || keyFile != ""):
		return nil, errors.New("a certificate is given both as files and in memory: choose one")
	case inMemory != nil:
		return func() (*tls.Certificate, error) { return inMemory, nil }, nil
	case certFile == "" && keyFile == "":
		return nil, nil
	case keyFile == "":
		return nil, fmt.Errorf("certificate file %s has no key file: set both", certFile)
	case certFile == "":
		return nil, fmt.Errorf("key file %s has no certificate file: set both", keyFile)
	}
	return func() (*tls.Certificate, error) { return readKeyPair(certFile, keyFile) }, nil
}
