// Package docs_test runs what the documents tell their readers to type.
package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is the project, seen from this package.
const root = ".."

// documents lists every page with snippets.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return append(top, pages...)
}

// A snippet is one fenced block.
type snippet struct {
	page, lang, text string
	line             int
}

func snippets(t *testing.T, page string) []snippet {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []snippet
	var current *snippet
	for i, line := range strings.Split(string(data), "\n") {
		fence, ok := strings.CutPrefix(line, "```")
		switch {
		case ok && current == nil:
			current = &snippet{page: page, lang: strings.TrimSpace(fence), line: i + 1}
		case ok:
			all = append(all, *current)
			current = nil
		case current != nil:
			current.text += line + "\n"
		}
	}
	if current != nil {
		t.Fatalf("%s:%d: the block does not end", page, current.line)
	}
	return all
}

// build compiles the binary once for a test.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "felix")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/felix")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// typedPages are the pages whose reader has a `felix dev` beside him, with how
// many of their blocks are for him to type.
var typedPages = map[string]int{filepath.Join(root, "README.md"): 4, "storage.md": 3, "queues.md": 7}

// TestTypedCommands plays the reader of these pages: it builds, starts
// `felix dev` in one terminal and types the blocks in another, in a directory
// that looks like a fresh clone.
func TestTypedCommands(t *testing.T) {
	for page, least := range typedPages {
		t.Run(filepath.Base(page), func(t *testing.T) { typeCommands(t, page, least) })
	}
}

func typeCommands(t *testing.T, page string, least int) {
	bin := build(t)
	dir := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, "felix")); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/config", "XDG_STATE_HOME="+dir+"/state")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The ports of the page may be taken on the machine that runs the tests.
	dev := exec.CommandContext(ctx, "./felix", "dev", "--port", "0", "--http", "0", "--json")
	dev.Dir, dev.Env = dir, env
	dev.Cancel = func() error { return dev.Process.Signal(os.Interrupt) }
	dev.WaitDelay = 10 * time.Second
	dev.Stderr = os.Stderr // what goes wrong at the start is said there
	out, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = dev.Wait() // it was told to end
	}()
	var ready map[string]any
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatalf("felix dev did not become ready: %v", err)
	}

	typed := 0
	for _, s := range snippets(t, page) {
		if s.lang != "sh" || !strings.HasPrefix(s.text, "./felix ") {
			continue
		}
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", s.text)
		cmd.Dir, cmd.Env = dir, env
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s:%d: %v\n%s\n%s", page, s.line, err, s.text, text)
		}
		typed++
	}
	if typed < least {
		t.Fatalf("typed %d blocks of %s, expected %d at least", typed, page, least)
	}
}

// command finds the commands of a shell block.
var command = regexp.MustCompile(`(?m)^\s*(?:\./)?felix ([^#&|>\n]*)|^\s*go run \./cmd/felix ([^#&|>\n]*)`)

// TestCommandsExist checks every felix command line of every page against the
// binary: the command and its flags must be ones it knows.
func TestCommandsExist(t *testing.T) {
	bin := build(t)
	seen := 0
	for _, page := range documents(t) {
		if filepath.Base(page) == "cli.md" {
			continue // generated from the commands themselves
		}
		for _, s := range snippets(t, page) {
			for _, m := range command.FindAllStringSubmatch(s.text, -1) {
				args := strings.Fields(m[1] + m[2])
				checkCommand(t, bin, fmt.Sprintf("%s:%d", s.page, s.line), args)
				seen++
			}
		}
	}
	if seen < 8 {
		t.Fatalf("found %d command lines in the documents", seen)
	}
}

func checkCommand(t *testing.T, bin, where string, args []string) {
	t.Helper()
	verb := []string{"help"}
	var flags []string
	if behind := slices.Index(args, "--"); behind >= 0 {
		args = args[:behind] // what follows is a command of its own
	}
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "-"):
			name, _, _ := strings.Cut(a, "=")
			flags = append(flags, name)
		case len(flags) == 0 && i < 2:
			verb = append(verb, a)
		}
	}
	help, err := exec.CommandContext(t.Context(), bin, verb...).CombinedOutput()
	if err != nil && len(verb) > 2 { // the second word may be an argument
		help, err = exec.CommandContext(t.Context(), bin, verb[:2]...).CombinedOutput()
	}
	if err != nil {
		t.Errorf("%s: felix %s: %s", where, strings.Join(args, " "), help)
		return
	}
	for _, f := range flags {
		if !bytes.Contains(help, []byte(f)) {
			t.Errorf("%s: felix %s: no flag %s", where, strings.Join(args, " "), f)
		}
	}
}

// goSnippet makes a file of a block that stands for the middle of a function.
const goSnippet = `package main

import (
	"context"

	"github.com/felixlog/felix/client"
)

func main() { _ = run(context.Background(), "", "") }

func run(ctx context.Context, token, caFile string) error {
%s
	return nil
}
`

// TestGoSnippetsCompile compiles the Go blocks of every page within the
// module, laid over a package that is not there.
func TestGoSnippetsCompile(t *testing.T) {
	compiled := 0
	for _, page := range documents(t) {
		for _, s := range snippets(t, page) {
			if s.lang != "go" {
				continue
			}
			dir := t.TempDir()
			source := filepath.Join(dir, "main.go")
			if err := os.WriteFile(source, fmt.Appendf(nil, goSnippet, s.text), 0o600); err != nil {
				t.Fatal(err)
			}
			top, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]map[string]string{
				"Replace": {filepath.Join(top, "cmd", "snippet", "main.go"): source},
			})
			if err != nil {
				t.Fatal(err)
			}
			layer := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(layer, overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", layer, "-o", filepath.Join(dir, "snippet"), "./cmd/snippet")
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %v\n%s", s.page, s.line, err, out)
			}
			compiled++
		}
	}
	if compiled == 0 {
		t.Fatal("no Go snippet found")
	}
}

// TestLinksLead checks that a relative link of a page names a file.
func TestLinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range documents(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// TestDependenciesAreExplained checks that every module asked for directly has
// its line.
func TestDependenciesAreExplained(t *testing.T) {
	page, err := os.ReadFile("dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	if len(modules) < 10 {
		t.Fatalf("go list found %d modules", len(modules))
	}
	for _, m := range modules {
		if !strings.Contains(string(page), "`"+m+"`") {
			t.Errorf("%s is not in dependencies.md", m)
		}
	}
}
