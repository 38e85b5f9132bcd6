package contexts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func store(t *testing.T) Store {
	t.Helper()
	return Store{Path: filepath.Join(t.TempDir(), "felix", "config.yaml")}
}

func TestAddUseRemove(t *testing.T) {
	s := store(t)
	add := func(name string, c Connection, replace bool) error {
		return s.Update(func(f *File) error { return f.Add(name, c, "/home/u/project", replace) })
	}
	if err := add("one", Connection{Brokers: []string{"127.0.0.1:5000"}, Tenant: "t1", CAFile: "tls/ca.pem", TokenFile: "/abs/token"}, false); err != nil {
		t.Fatal(err)
	}
	if err := add("two", Connection{Tenant: "t2", ALPN: true}, false); err != nil {
		t.Fatal(err)
	}
	f, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if f.Current != "one" {
		t.Errorf("current is %q, want the first one added", f.Current)
	}
	one := f.Contexts["one"]
	if one.CAFile != "/home/u/project/tls/ca.pem" || one.TokenFile != "/abs/token" {
		t.Errorf("paths not saved absolute: %+v", one)
	}
	if !f.Contexts["two"].ALPN {
		t.Error("alpn lost")
	}

	if err := add("one", Connection{}, false); !errors.Is(err, ErrExists) {
		t.Errorf("adding an existing name: %v", err)
	}
	if err := add("one", Connection{Tenant: "new"}, true); err != nil {
		t.Errorf("replacing: %v", err)
	}
	if err := s.Update(func(f *File) error { return f.Use("three") }); !errors.Is(err, ErrNotFound) {
		t.Errorf("using an unknown name: %v", err)
	}
	if err := s.Update(func(f *File) error { return f.Remove("one") }); err != nil {
		t.Fatal(err)
	}
	f, err = s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if f.Current != "" || len(f.Contexts) != 1 {
		t.Errorf("after removing the current context: %+v", f)
	}
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("mode bits do not tell on this system")
		return
	}
	s := store(t)
	noChange := func(*File) error { return nil }
	if err := s.Update(noChange); err != nil {
		t.Fatal(err)
	}
	mode := func() os.FileMode {
		info, err := os.Stat(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if mode() != 0o600 {
		t.Errorf("mode %o, want 600", mode())
	}
	if err := os.Chmod(s.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if !s.Exposed() {
		t.Error("a file others can read is not called exposed")
	}
	if err := s.Update(noChange); err != nil {
		t.Fatal(err)
	}
	if mode() != 0o600 || s.Exposed() {
		t.Errorf("mode after an update %o, want 600", mode())
	}
}

func TestUnknownKeysAreErrors(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"top level", "curent: dev\n", `line 1: unknown key "curent"; did you mean "current"?`},
		{"in a context", "contexts:\n  dev:\n    tenant: t\n    brokerz: [a]\n", `line 4: unknown key "brokerz" in context dev; did you mean "brokers"?`},
		{"far off", "contexts:\n  dev:\n    colour: red\n", `line 3: unknown key "colour" in context dev; known keys: brokers, `},
		{"bad name", "contexts:\n  \"a b\": {}\n", `context name "a b"`},
		{"not a mapping", "- a\n", "expected keys and values"},
		{"a context that is a list", "contexts:\n  dev: [a]\n", "line 2: expected keys and values in context dev"},
		{"wrong type", "contexts:\n  dev:\n    alpn: perhaps\n", "cannot unmarshal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parse([]byte(tc.yaml))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestEmptyFilesAreEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a remark\n", "contexts:\n", "contexts: {}\n", "contexts:\n  dev:\n"} {
		if _, err := parse([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUpdatesAtOnceAllStay(t *testing.T) {
	s := store(t)
	const writers = 16
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			name := string(rune('a' + i))
			if err := s.Update(func(f *File) error { return f.Add(name, Connection{Tenant: name}, "/", false) }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	f, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Contexts) != writers {
		t.Errorf("%d contexts saved, want %d", len(f.Contexts), writers)
	}
}

func TestFailedUpdateWritesNothing(t *testing.T) {
	s := store(t)
	if err := s.Update(func(f *File) error { return f.Add("one", Connection{}, "/", false) }); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no")
	if err := s.Update(func(f *File) error { f.Contexts = nil; return refused }); !errors.Is(err, refused) {
		t.Fatalf("error %v", err)
	}
	after, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("the file changed:\n%s", after)
	}
}

func TestDefaultPath(t *testing.T) {
	path, err := DefaultPath(func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return "/xdg"
		}
		return ""
	})
	if err != nil || path != filepath.FromSlash("/xdg/felix/config.yaml") {
		t.Errorf("path %q, error %v", path, err)
	}
}
