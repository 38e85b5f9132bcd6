package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/internal/cli/contexts"
)

// testApp is an App in a directory of its own, with what it printed.
type testApp struct {
	*App
	out, errs bytes.Buffer
}

func newTestApp(t *testing.T, environ map[string]string) *testApp {
	t.Helper()
	dir := t.TempDir()
	self, err := thisProgram("felix") // TestMain has put it on the path
	if err != nil {
		t.Fatal(err)
	}
	ta := &testApp{}
	ta.App = &App{
		Stdin: strings.NewReader(""), Stdout: &ta.out, Stderr: &ta.errs, Dir: dir, Self: self,
		Getenv: func(name string) string {
			if name == "XDG_CONFIG_HOME" && environ[name] == "" {
				return dir
			}
			return environ[name]
		},
		Environ: func() []string { return nil },
	}
	return ta
}

// resolveLine resolves the settings of a command line.
func (ta *testApp) resolveLine(t *testing.T, args ...string) (resolved, error) {
	t.Helper()
	var out resolved
	var err error
	root := &cobra.Command{Use: "felix", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(io.Discard)
	ta.flags = globalFlags{}
	ta.addGlobalFlags(root)
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err = ta.resolve(cmd.Flags())
		return nil
	}
	root.SetArgs(append([]string{}, args...))
	if parseErr := root.ExecuteContext(context.Background()); parseErr != nil {
		t.Fatal(parseErr)
	}
	return out, err
}

// Each setting, from each place, in each order.
func TestPrecedence(t *testing.T) {
	for _, s := range settings() {
		if s.env == "" {
			continue
		}
		t.Run(s.flag, func(t *testing.T) {
			value := func(from string) string {
				if s.path {
					return "/" + from
				}
				return from
			}
			var saved contexts.Connection
			if err := s.set(&saved, value("context")); err != nil {
				t.Fatal(err)
			}
			for _, tc := range []struct {
				name                 string
				context, env, flag   bool
				want                 string
				wantContextConsulted string
			}{
				{"nothing", false, false, false, "", ""},
				{"context", true, false, false, value("context"), "saved"},
				{"environment", false, true, false, value("env"), ""},
				{"flag", false, false, true, value("flag"), ""},
				{"environment over context", true, true, false, value("env"), "saved"},
				{"flag over context", true, false, true, value("flag"), "saved"},
				{"flag over environment", false, true, true, value("flag"), ""},
				{"flag over both", true, true, true, value("flag"), "saved"},
			} {
				t.Run(tc.name, func(t *testing.T) {
					environ := map[string]string{}
					if tc.env {
						environ[s.env] = value("env")
					}
					ta := newTestApp(t, environ)
					if tc.context {
						store := contexts.Store{Path: filepath.Join(ta.Dir, "felix", "config.yaml")}
						if err := store.Update(func(f *contexts.File) error { return f.Add("saved", saved, "/", false) }); err != nil {
							t.Fatal(err)
						}
					}
					var args []string
					if tc.flag {
						args = []string{"--" + s.flag, value("flag")}
					}
					got, err := ta.resolveLine(t, args...)
					if err != nil {
						t.Fatal(err)
					}
					if text := s.get(&got.Connection); text != tc.want {
						t.Errorf("%s is %q, want %q", s.flag, text, tc.want)
					}
					if got.ContextName != tc.wantContextConsulted {
						t.Errorf("context %q, want %q", got.ContextName, tc.wantContextConsulted)
					}
				})
			}
		})
	}
}

// A token named in a nearer place sets a token file of a farther one aside,
// and the other way round.
func TestNearerTokenSetsFartherAside(t *testing.T) {
	ta := newTestApp(t, map[string]string{"FELIX_AUTH_TOKEN": "env-token"})
	store := contexts.Store{Path: filepath.Join(ta.Dir, "felix", "config.yaml")}
	err := store.Update(func(f *contexts.File) error {
		return f.Add("saved", contexts.Connection{TokenFile: "/context/token"}, "/", false)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ta.resolveLine(t)
	if err != nil {
		t.Fatal(err)
	}
	if got.Token != "env-token" || got.TokenFile != "" {
		t.Errorf("token %q, file %q: want the environment's token alone", got.Token, got.TokenFile)
	}
	got, err = ta.resolveLine(t, "--token-file", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if got.Token != "" || got.TokenFile != filepath.Join(ta.Dir, "mine") {
		t.Errorf("token %q, file %q: want the flag's file alone, absolute", got.Token, got.TokenFile)
	}
}

func TestContextIsChosenByFlagThenEnvironmentThenFile(t *testing.T) {
	environ := map[string]string{}
	ta := newTestApp(t, environ)
	store := contexts.Store{Path: filepath.Join(ta.Dir, "felix", "config.yaml")}
	err := store.Update(func(f *contexts.File) error {
		for _, name := range []string{"first", "second", "third"} {
			if err := f.Add(name, contexts.Connection{Tenant: name}, "/", false); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want string, args ...string) {
		t.Helper()
		got, err := ta.resolveLine(t, args...)
		if err != nil || got.Tenant != want {
			t.Errorf("%v: tenant %q, error %v; want %q", args, got.Tenant, err, want)
		}
	}
	check("first")
	environ["FELIX_CONTEXT"] = "second"
	check("second")
	check("third", "--context", "third")
}

func TestExposedTokenIsRemarkedOn(t *testing.T) {
	ta := newTestApp(t, nil)
	store := contexts.Store{Path: filepath.Join(ta.Dir, "felix", "config.yaml")}
	err := store.Update(func(f *contexts.File) error {
		return f.Add("saved", contexts.Connection{Token: "hush"}, "/", false)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ta.resolveLine(t); err != nil || ta.errs.Len() > 0 {
		t.Fatalf("error %v, said %q", err, &ta.errs)
	}
	if err := os.Chmod(store.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ta.resolveLine(t); err != nil {
		t.Fatal(err)
	}
	if store.Exposed() && !strings.Contains(ta.errs.String(), "chmod 600") {
		t.Errorf("said %q", &ta.errs)
	}
}
