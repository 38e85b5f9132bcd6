package docs_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// walks are the pages whose blocks are one script, typed from top to bottom in
// one shell, with how many blocks that are.
var walks = map[string]int{"auth.md": 9, "controlplane.md": 6}

// TestWalks plays the reader of these pages. Lines that build the programs are
// done for him, in the project's directory.
func TestWalks(t *testing.T) {
	programs := t.TempDir()
	for name, pkg := range map[string]string{"felix": "./cmd/felix", "idp": "./examples/idp"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(programs, name), pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", pkg, err, out)
		}
	}
	for page, least := range walks {
		t.Run(page, func(t *testing.T) {
			walk(t, script(t, page, "sh", least), programs, nil, inOwnNetwork)
		})
	}
	t.Run("on Postgres", func(t *testing.T) {
		// The database is in the network of the test, and so are the programs:
		// on ports that are free there.
		text := ports.ReplaceAllStringFunc(script(t, "controlplane.md", "sh postgres", 2), freePorts(t))
		walk(t, text, programs, []string{"DATABASE_URL=" + pgtest.Start(t)}, func(run func() error) error { return run() })
	})
}

// ports finds the addresses of a script.
var ports = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// freePorts gives each address another one that is free, always the same.
func freePorts(t *testing.T) func(addr string) string {
	given := make(map[string]string)
	return func(addr string) string {
		if given[addr] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			given[addr] = l.Addr().String()
		}
		return given[addr]
	}
}

// script joins the blocks of a page that are of a language, but for those that
// build the programs.
func script(t *testing.T, page, lang string, least int) string {
	t.Helper()
	// What the page starts in the background ends with it.
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
	blocks := 0
	for _, s := range snippets(t, page) {
		if s.lang != lang || strings.HasPrefix(s.text, "go build ") {
			continue
		}
		blocks++
		script += s.text
	}
	if blocks < least {
		t.Fatalf("%s has %d blocks to type, expected %d at least", page, blocks, least)
	}
	return script
}

// walk runs a script in a directory with the programs.
func walk(t *testing.T, script, programs string, environ []string, in func(run func() error) error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"felix", "idp"} {
		if err := os.Symlink(filepath.Join(programs, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-x", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/config", "XDG_STATE_HOME="+dir+"/state")
	cmd.Env = append(cmd.Env, environ...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	said, err := os.Create(filepath.Join(dir, "said.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := in(cmd.Run); err != nil {
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("%v\n%s", err, lastLines(string(text), 120))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
