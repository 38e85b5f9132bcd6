// Package redisref measures Redis with a client as lean as its protocol
// allows, in the shapes Felix's cache is measured in.
package redisref

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/felixlog/felix/bench/internal/pki"
)

// ErrMissing says that there is no Redis on this machine.
var ErrMissing = errors.New("redis-server is not installed (apt-get install redis-server)")

// Find is the path of redis-server, or ErrMissing.
func Find() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", ErrMissing
	}
	return path, nil
}

// A Target is a server to load, and how.
type Target struct {
	Addr  string    `json:"addr"`
	TLS   bool      `json:"tls"`
	Files pki.Files `json:"files"`
	// Durable appends every write to a file and syncs it before the answer.
	Durable bool `json:"durable"`
}

// NewTarget picks a free port on the loopback interface. Redis cannot choose
// one itself, so another process may take it before Redis does; Ready then
// fails and the caller tries another.
func NewTarget(tls bool, files pki.Files) (Target, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Target{}, fmt.Errorf("find a free port: %w", err)
	}
	return Target{Addr: ln.Addr().String(), TLS: tls, Files: files}, ln.Close()
}

// Args are redis-server's arguments for serving t, from memory alone or with
// an append-only file, with dir as its working directory.
func (t Target) Args(dir string) ([]string, error) {
	host, port, err := net.SplitHostPort(t.Addr)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--bind", host, "--dir", dir, "--daemonize", "no", "--loglevel", "warning",
		"--save", "",
	}
	if t.Durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	if !t.TLS {
		return append(args, "--port", port), nil
	}
	return append(args, "--port", "0", "--tls-port", port, "--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3",
		"--tls-cert-file", t.Files.Cert, "--tls-key-file", t.Files.Key, "--tls-ca-cert-file", t.Files.CA), nil
}

// Ready waits until the server answers.
func (t Target) Ready(ctx context.Context) error {
	for {
		c, err := t.dial(ctx)
		if err == nil {
			err = c.ping()
			c.close()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis at %s does not answer: %w", t.Addr, errors.Join(err, context.Cause(ctx)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// command encodes a command in the protocol of Redis (RESP).
func command(words ...string) []byte {
	b := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		b = append(b, "$"+strconv.Itoa(len(w))+"\r\n"+w+"\r\n"...)
	}
	return b
}
