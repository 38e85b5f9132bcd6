package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/felixlog/felix/internal/auth"
)

// scriptCommands are what the scripts can do beside the commands of
// testscript itself.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":   exits,
		"signing": signing,
		"start":   start,
		"finish":  finish,
		"field":   field,
		"mode":    mode,
		"shards":  shards,
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

// startTime bounds how long a started command may take to say it is ready.
const startTime = 20 * time.Second

// backgroundKey is under what the started commands of a script are kept.
const backgroundKey = "felix:started"

// start runs a command in the background and waits for its first line, which
// it puts into a file: start ready.json felix dev --json. The command is
// interrupted by finish ready.json, or at the end of the script, and must then
// exit with 0.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start FILE command [argument...]")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), scriptEnviron(ts)
	errs := &lockedBuffer{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewReader(out)
	first := make(chan error, 1)
	go func() {
		line, err := lines.ReadString('\n')
		if err == nil {
			err = os.WriteFile(ts.MkAbs(args[0]), []byte(line), 0o600)
		}
		first <- err
	}()
	select {
	case err = <-first:
	case <-time.After(startTime):
		err = fmt.Errorf("nothing printed within %s", startTime)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		ts.Fatalf("start %s: %v\n%s", args[1], err, errs)
	}
	finishOnce := sync.OnceValue(func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, lines); err != nil {
			return err
		}
		err := cmd.Wait()
		ts.Logf("[%s]\n%s", strings.Join(args[1:], " "), errs)
		return err
	})
	started := ts.Value(backgroundKey).(map[string]func() error)
	started[args[0]] = finishOnce
	ts.Defer(func() {
		if err := finishOnce(); err != nil {
			panic(fmt.Sprintf("%s, interrupted: %v\n%s", strings.Join(args[1:], " "), err, errs))
		}
	})
}

// finish interrupts a started command and waits for its end: finish FILE.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: finish FILE")
	}
	end := ts.Value(backgroundKey).(map[string]func() error)[args[0]]
	if end == nil {
		ts.Fatalf("nothing was started with %s", args[0])
	}
	ts.Check(end())
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

// signing makes a key and a token for a tenant: signing TENANT writes key.pem
// (the public key) and token.
func signing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: signing TENANT")
	}
	private, err := auth.GenerateKey(rand.Reader)
	ts.Check(err)
	signer := auth.NewSigner("", private)
	public, err := auth.MarshalPEM(signer.Key())
	ts.Check(err)
	token, err := signer.Mint(auth.Claims{
		Tenant: args[0], Subject: "tester", IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
		Permissions: []string{"stream.publish:stream:" + args[0] + "/*", "stream.subscribe:stream:" + args[0] + "/default/orders"},
	})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("key.pem"), public, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("token"), []byte(token+"\n"), 0o600))
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
	for _, name := range []string{"FELIX_CONTEXT", "FELIX_CLI_CONFIG"} {
		if ts.Getenv(name) != "" {
			environ = append(environ, name+"="+ts.Getenv(name))
		}
	}
	return environ
}
