// Package dev runs a broker for development with its control plane: one process,
// no files to prepare. It makes its own certificate authority and tokens that do
// not expire, and streams and caches appear when they are first used: on disk if
// it is told where, else in memory.
package dev

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/felixlog/felix/transport/tlsconfig"
)

// The ports of a development broker unless others are asked for.
const (
	DefaultPort     = 5000 // UDP, for clients
	DefaultHTTPPort = 8080 // TCP, for /live, /ready and /metrics
	DefaultAPIPort  = 8443 // TCP, for the control plane's API
)

// loopback is where a development broker listens, and nowhere else.
const loopback = "127.0.0.1"

// Options say what Start starts.
type Options struct {
	// Dir keeps the certificate authority, the signing key and the token
	// across starts. Empty: they live in memory and end with the server.
	Dir string
	// Data keeps what is published and cached, on the log. Empty: in memory,
	// gone with the server.
	Data string
	// Port is for clients (UDP), HTTPPort for /live, /ready and /metrics, and
	// APIPort for the control plane (both TCP). 0 takes a free one.
	Port, HTTPPort, APIPort int
	// Flags are broker settings by the names of their flags; they come
	// before what this package sets.
	Flags map[string]string
	// Environ is the environment a broker may take settings from.
	Environ []string
	// Log takes the lines of the log; nil discards them.
	Log io.Writer
	// Version is told to clients and metrics.
	Version string
}

// A trust is the certificates of a development broker.
type trust struct {
	authority   []byte // PEM
	certificate tls.Certificate
	file        string // of the authority; empty in memory
}

// loadTrust makes or loads the authority and the server's certificate.
func loadTrust(dir string) (trust, error) {
	options := tlsconfig.DevOptions{Now: time.Now}
	var ca *tlsconfig.DevCA
	var err error
	if dir == "" {
		ca, err = tlsconfig.NewDevCA(options)
	} else {
		ca, err = tlsconfig.LoadDevCA(dir, options)
	}
	if err != nil {
		return trust{}, fmt.Errorf("certificates: %w", err)
	}
	return trust{authority: ca.CAPEM(), certificate: ca.ServerCertificate(), file: ca.CAFile()}, nil
}

// prepare reads or makes what identifies the server.
func prepare(dir string) (trust, identity, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return trust{}, identity{}, fmt.Errorf("state directory: %w", err)
		}
	}
	certificates, err := loadTrust(dir)
	if err != nil {
		return trust{}, identity{}, err
	}
	if dir == "" {
		id, _, err := newIdentity(rand.Reader, time.Now())
		return certificates, id, err
	}
	id, err := loadIdentity(dir, rand.Reader, time.Now())
	if err != nil {
		return trust{}, identity{}, fmt.Errorf("token: %w", err)
	}
	return certificates, id, nil
}

// procFS is where the holders of ports are looked up.
func procFS() fs.FS { return os.DirFS("/proc") }

// at is the loopback address with a port.
func at(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// inDir is a file in a state directory, "" in memory.
func inDir(dir, file string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, file)
}
