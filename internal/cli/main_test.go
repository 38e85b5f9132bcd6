package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/examples"
)

func TestMain(m *testing.M) {
	testscript.Main(pgtest.Tests(m), map[string]func(){
		"felix": func() { os.Exit(Main()) },
	})
}

// TestScripts runs the scripts of testdata/script against the commands of
// this package, each in a home of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Values[backgroundKey] = make(startedCommands)
			if err := os.WriteFile(filepath.Join(env.WorkDir, "quakes.ndjson"), examples.Quakes(), 0o600); err != nil {
				return err
			}
			// Under the race detector a process sleeps a second as it ends.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			return os.MkdirAll(home, 0o700)
		},
		Cmds: scriptCommands(),
	})
}
