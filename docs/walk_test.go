package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		t.Run(page, func(t *testing.T) { walk(t, page, least, programs) })
	}
}

func walk(t *testing.T, page string, least int, programs string) {
	// What the page starts in the background ends with it.
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
	blocks := 0
	for _, s := range snippets(t, page) {
		if s.lang != "sh" || strings.HasPrefix(s.text, "go build ") {
			continue
		}
		blocks++
		script += s.text
	}
	if blocks < least {
		t.Fatalf("%s has %d blocks to type, expected %d at least", page, blocks, least)
	}
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
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	said, err := os.Create(filepath.Join(dir, "said.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := inOwnNetwork(cmd.Run); err != nil {
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("%s: %v\n%s", page, err, lastLines(string(text), 120))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
