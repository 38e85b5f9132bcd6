package cli

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/felixlog/felix/internal/auth"
)

// scriptCommands are what the scripts can do beside the commands of
// testscript itself.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"ended":      ended,
		"eventually": eventually,
		"exits":      exits,
		"fetch":      fetch,
		"field":      field,
		"finish":     finish,
		"gone":       gone,
		"interrupt":  interrupt,
		"kill9":      kill9,
		"mode":       mode,
		"said":       said,
		"shards":     shards,
		"signing":    signing,
		"start":      start,
		"terminate":  terminate,
	}
}

// exits runs a command and checks its exit code: exits 2 felix pub. The
// commands stdout and stderr see its output.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, failed := errors.AsType[*exec.ExitError](err)
		if !failed {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// fetch gets a page until it has a status: fetch STATUS URL.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fetch STATUS URL")
	}
	last := ""
	if !within(func() bool {
		response, err := http.Get(args[1])
		if err != nil {
			last = err.Error()
			return false
		}
		defer response.Body.Close()
		last = response.Status
		return strings.HasPrefix(last, args[0]+" ")
	}) {
		ts.Fatalf("get %s: never %s, at last %s", args[1], args[0], last)
	}
}

// field puts a member of an object, of a list the first, into a variable:
// field FILE NAME VARIABLE. A further variable gets the port of an address.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: field FILE NAME VARIABLE [PORT-VARIABLE]")
	}
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &object))
	member := object[args[1]]
	if list, ok := member.([]any); ok && len(list) > 0 {
		member = list[0]
	}
	value := fmt.Sprint(member)
	ts.Setenv(args[2], value)
	if len(args) == 4 {
		ts.Setenv(args[3], value[strings.LastIndexByte(value, ':')+1:])
	}
}

// signing makes a key and tokens for a tenant: signing TENANT writes key.pem
// (the public key), token, and manager, which may do what token may and move
// the groups of the stream orders.
func signing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: signing TENANT")
	}
	private, err := auth.GenerateKey(rand.Reader)
	ts.Check(err)
	signer := auth.NewSigner("", private)
	public, err := auth.MarshalPEM(signer.Key())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("key.pem"), public, 0o600))
	orders := "stream:" + args[0] + "/default/orders"
	user := []string{"stream.publish:stream:" + args[0] + "/*", "stream.subscribe:" + orders}
	for file, permissions := range map[string][]string{"token": user, "manager": append(user, "stream.manage:"+orders)} {
		token, err := signer.Mint(auth.Claims{
			Tenant: args[0], Subject: "tester", IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour), Permissions: permissions,
		})
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(token+"\n"), 0o600))
	}
}

// mode checks the permissions of a file: mode 600 file.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL FILE")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(filepath.FromSlash(args[1])))
	ts.Check(err)
	if info.Mode().Perm() != os.FileMode(want) {
		ts.Fatalf("%s has mode %o, want %o", args[1], info.Mode().Perm(), want)
	}
}

// scriptEnviron is the environment of the script's commands.
func scriptEnviron(ts *testscript.TestScript) []string {
	var environ []string
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR", "GORACE"} {
		environ = append(environ, name+"="+ts.Getenv(name))
	}
	for _, s := range settings() {
		if s.env != "" && ts.Getenv(s.env) != "" {
			environ = append(environ, s.env+"="+ts.Getenv(s.env))
		}
	}
	for _, name := range []string{"FELIX_CONTEXT", "FELIX_CLI_CONFIG", "FELIX_GROUP_VISIBILITY_TIMEOUT_MS"} {
		if ts.Getenv(name) != "" {
			environ = append(environ, name+"="+ts.Getenv(name))
		}
	}
	return environ
}
