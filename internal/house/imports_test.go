package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/felixlog/felix"

// rooms lists, for each room, the other rooms it may import. A room's own
// subpackages are always allowed. Packages that match no room (commands,
// benchmarks, tests' helpers) may import anything.
var rooms = []struct {
	prefix string
	may    []string
}{
	{"wire", nil},
	{"transport", nil},
	{"storage", nil},
	{"broker", []string{"storage"}},
	{"replication", []string{"storage", "transport"}},
	{"controlplane", []string{"internal/auth", "internal/config", "internal/telemetry"}},
	{"client", []string{"wire", "transport"}},
	{"internal/auth", nil},
	{"internal/config", nil},
	{"internal/telemetry", nil},
	{"internal/node", []string{"wire", "transport", "storage", "broker", "replication", "controlplane/model", "controlplane/apiclient", "internal/auth", "internal/config", "internal/telemetry"}},
	{"felixtest", []string{"internal/node", "broker", "client", "wire", "transport", "internal/auth", "internal/config"}},
}

// forbidden lists dependencies that must never reach a room, however deep.
var forbidden = []struct {
	prefix string
	deps   []string
}{
	{"wire", []string{"net", "github.com/quic-go/quic-go"}},
	{"broker", []string{"net", "github.com/quic-go/quic-go", module + "/wire", module + "/transport"}},
	{"client", []string{module + "/broker", module + "/storage", module + "/internal/node"}},
	{"controlplane", []string{module + "/wire", module + "/transport", module + "/storage", module + "/broker", module + "/client", module + "/internal/node"}},
	{"controlplane/model", []string{"net"}},
	{"controlplane/placement", []string{"net"}},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps", module+"/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			all = append(all, p)
		}
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages of the module, expected the whole house", len(all))
	}
	return all
}

func within(path, prefix string) bool {
	rel := strings.TrimPrefix(path, module+"/")
	return rel == prefix || strings.HasPrefix(rel, prefix+"/")
}

// TestArrowsPointOneWay checks every import between rooms against the map
// of ARCHITECTURE.md.
func TestArrowsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, room := range rooms {
			if !within(p.ImportPath, room.prefix) {
				continue
			}
			for _, imp := range p.Imports {
				if !strings.HasPrefix(imp, module+"/") || within(imp, room.prefix) {
					continue
				}
				if !slices.ContainsFunc(room.may, func(m string) bool { return within(imp, m) }) {
					t.Errorf("%s imports %s: room %q may import only %v", p.ImportPath, imp, room.prefix, room.may)
				}
			}
		}
	}
}

// TestCoreKnowsNoCarrier checks that no transport or socket package reaches
// a room that must not know one, through any depth of imports.
func TestCoreKnowsNoCarrier(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range forbidden {
			if !within(p.ImportPath, rule.prefix) {
				continue
			}
			for _, dep := range rule.deps {
				if slices.Contains(p.Deps, dep) || slices.Contains(p.Imports, dep) {
					t.Errorf("%s depends on %s", p.ImportPath, dep)
				}
			}
		}
	}
}
