package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ambient lists what a core package takes as a parameter instead: the clock,
// the file system, randomness and the process-wide logger.
var ambient = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"os":           {"Open", "OpenFile", "Create", "ReadFile", "WriteFile", "Remove", "RemoveAll", "Rename", "Mkdir", "MkdirAll", "Getenv", "LookupEnv"},
	"math/rand":    nil,
	"math/rand/v2": {"Int", "IntN", "Int64", "Int64N", "Uint64", "Float64", "Perm", "Shuffle", "N"},
	"crypto/rand":  nil,
	"log":          nil,
	"log/slog":     {"Default", "SetDefault", "Info", "Warn", "Error", "Debug"},
}

// backends are the files in which a backend, which lives in a process, fills in
// what its callers leave out; the state machine beside them is core.
var backends = []string{
	"../../controlplane/store/memory/machine.go",
	"../../controlplane/store/memory/memory.go",
}

// machine is the one core package that calls the operating system's files: it
// is the parameter the others take.
const machine = "../../storage/fs"

// TestCoreTakesItsSurroundingsAsParameters walks the syntax of the core
// packages for calls that reach for them directly.
func TestCoreTakesItsSurroundingsAsParameters(t *testing.T) {
	files := 0
	for _, room := range []string{"wire", "broker", "storage", "replication", "controlplane/model", "controlplane/placement", "controlplane/rbac", "controlplane/store/memory"} {
		err := filepath.WalkDir(filepath.Join("../..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return ignoreMissing(err)
			}
			files++
			if !slices.Contains(backends, path) {
				checkFile(t, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 10 {
		t.Fatalf("walked %d files of the core, expected all of it", files)
	}
}

// ignoreMissing lets a room that is not built yet pass.
func ignoreMissing(err error) error {
	if err != nil && strings.Contains(err.Error(), "no such file") {
		return nil
	}
	return err
}

func checkFile(t *testing.T, path string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, imp := range f.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		name := filepath.Base(strings.TrimSuffix(p, "/v2"))
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = p
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok || pkg.Obj != nil {
			return true
		}
		banned, ok := ambient[names[pkg.Name]]
		if !ok || names[pkg.Name] == "os" && filepath.ToSlash(filepath.Dir(path)) == machine {
			return true
		}
		if banned == nil {
			t.Errorf("%s: %s.%s: a core package takes this as a parameter", fset.Position(sel.Pos()), pkg.Name, sel.Sel.Name)
		}
		for _, b := range banned {
			if sel.Sel.Name == b {
				t.Errorf("%s: %s.%s: a core package takes this as a parameter", fset.Position(sel.Pos()), pkg.Name, b)
			}
		}
		return true
	})
}
