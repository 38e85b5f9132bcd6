package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "felix"
	password  = "open sesame/123" // with characters that a URL escapes

	// portTries bounds the search for a free port: between finding it and the
	// server's taking it, somebody else may.
	portTries = 10
)

// settings make a server start and commit fast; its data is thrown away.
func settings(port string, more map[string]string) []string {
	all := map[string]string{
		"port":                    port,
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"fsync":                   "off",
		"full_page_writes":        "off",
		"max_connections":         "200",
		"deadlock_timeout":        "100ms",
		"shared_buffers":          "64MB",
		"lc_messages":             "C",
		"log_min_messages":        "log",
		"log_min_error_statement": "panic",
		"autovacuum":              "off",
		"max_wal_senders":         "0",
		"wal_level":               "minimal",
	}
	for name, value := range more {
		all[name] = value
	}
	var args []string
	for name, value := range all {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// A Server is one Postgres on loopback. Its port and data stay over a stop.
type Server struct {
	binary   string
	dir      *directory
	port     string
	settings map[string]string
	owner    *syscall.Credential // nil: whoever runs the tests

	mu      sync.Mutex
	running *process // nil while stopped
}

// launch makes a data directory and starts a server on it.
func launch(ctx context.Context, settings map[string]string) (*Server, error) {
	postgres, initdb, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := makeDirectory(settings["fsync"] == "on")
	if err != nil {
		return nil, err
	}
	s := &Server{binary: postgres, dir: dir, settings: settings, owner: owner}
	if err := s.create(ctx, initdb); err != nil {
		s.remove()
		return nil, err
	}
	for range portTries {
		if s.port, err = freePort(); err != nil {
			break
		}
		if err = s.run(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// create fills the data directory.
func (s *Server) create(ctx context.Context, initdb string) error {
	pwfile := filepath.Join(s.dir.path, "password")
	if err := os.WriteFile(pwfile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	if s.owner != nil {
		for _, path := range []string{s.dir.path, pwfile} {
			if err := os.Chown(path, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, initdb, "-D", s.data(), "-U", superuser, "--pwfile", pwfile,
		"--auth-host=password", "--auth-local=reject", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir = s.dir.path
	cmd.SysProcAttr = attributes(s.owner)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir.path, "data") }

// run starts the server and waits until it serves.
func (s *Server) run(ctx context.Context) error {
	cmd := exec.Command(s.binary, append([]string{"-D", s.data()}, settings(s.port, s.settings)...)...)
	cmd.Dir = s.dir.path
	cmd.SysProcAttr = attributes(s.owner)
	p, err := begin(cmd)
	if err != nil {
		return err
	}
	if err := p.serving(ctx); err != nil {
		p.stop(syscall.SIGQUIT)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = p
	return nil
}

// URL is that of a new database of the server, which lives as long as it does.
func (s *Server) URL(t testing.TB, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.admin(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0"); err != nil {
		t.Fatalf("create database: %v", err)
	}
	return s.url(name)
}

// Stop ends the server: it breaks its connections, and new ones are refused.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.stop(syscall.SIGINT)
		s.running = nil
	}
}

// Restart starts a stopped server on the same port and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.run(ctx); err != nil {
		t.Fatalf("restart Postgres: %v", err)
	}
}

// PID is the process id of a running server, for measuring it.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0
	}
	return s.running.pid
}

// remove stops the server and deletes its data.
func (s *Server) remove() {
	s.Stop()
	s.dir.remove()
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: net.JoinHostPort("127.0.0.1", s.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// admin runs one statement in the database that is always there.
func (s *Server) admin(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// freePort is a port nobody listens on just now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, ok := strings.Cut(l.Addr().String(), ":")
	if !ok {
		return "", fmt.Errorf("no port in %s", l.Addr())
	}
	return port, nil
}
