package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// recheck is how often the files of a certificate are looked at.
const recheck = time.Second

// A certificate is a pair of PEM files that is read again when they change.
// While they cannot be used, the last good pair serves.
type certificate struct {
	certFile, keyFile string
	clock             func() time.Time
	logger            *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	looked  time.Time
	stamps  [2]stamp // of the files that pair or problem is of
	problem string
}

// A stamp tells one content of a file from another without reading it.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(file string) (stamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}

func newCertificate(certFile, keyFile string, clock func() time.Time, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, clock: clock, logger: logger}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.looked = clock()
	return c, nil
}

// read takes the pair from its files if they changed.
func (c *certificate) read() error {
	var stamps [2]stamp
	for i, file := range []string{c.certFile, c.keyFile} {
		var err error
		if stamps[i], err = stampOf(file); err != nil {
			return readError(file, err)
		}
	}
	if c.pair != nil && stamps == c.stamps && c.problem == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s and key %s do not fit: %w", c.certFile, c.keyFile, err)
	}
	c.pair, c.stamps = &pair, stamps
	return nil
}

func readError(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", file)
	}
	return fmt.Errorf("read %s: %w", file, err)
}

// get is the pair for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); now.Sub(c.looked) >= recheck {
		c.looked = now
		before := c.pair
		err := c.read()
		c.report(err, c.pair != before)
	}
	return c.pair, nil
}

// report logs a problem when it is new, and a pair that was replaced.
func (c *certificate) report(err error, replaced bool) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != c.problem {
		c.logger.Error("TLS certificate cannot be read again, the one in use stays", "error", err)
	}
	if replaced {
		c.logger.Info("TLS certificate was read again", "file", c.certFile)
	}
	c.problem = problem
}

// tlsConfig makes the configuration of a listener; nil without files. With a
// client CA, clients must present a certificate of it.
func tlsConfig(certFile, keyFile, clientCA string, clock func() time.Time, logger *slog.Logger) (*tls.Config, error) {
	if certFile == "" {
		return nil, nil
	}
	cert, err := newCertificate(certFile, keyFile, clock, logger)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get, NextProtos: []string{"h2", "http/1.1"}}
	if clientCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, readError(clientCA, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", clientCA)
	}
	config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return config, nil
}
