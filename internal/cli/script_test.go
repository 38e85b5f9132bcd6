package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are what the scripts can do beside the commands of
// testscript itself.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits,
		"start": start,
		"mode":  mode,
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

// start runs a command in the background and waits for its first line, which
// it puts into a file: start ready.json felix dev --json. The command is
// interrupted at the end of the script and must then exit with 0.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start FILE command [argument...]")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Env = ts.Getenv("PWD"), scriptEnviron(ts)
	var errs strings.Builder
	cmd.Stderr = &errs
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
	ts.Defer(func() {
		cmd.Process.Signal(syscall.SIGINT)
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				break
			}
		}
		if err := cmd.Wait(); err != nil {
			ts.Fatalf("%s, interrupted: %v\n%s", strings.Join(args[1:], " "), err, errs.String())
		}
	})
	select {
	case err = <-first:
	case <-time.After(startTime):
		err = fmt.Errorf("nothing printed within %s", startTime)
	}
	if err != nil {
		cmd.Process.Kill()
		ts.Fatalf("start %s: %v\n%s", args[1], err, errs.String())
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
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR", "WORK"} {
		environ = append(environ, name+"="+ts.Getenv(name))
	}
	for _, s := range settings() {
		if s.env != "" && ts.Getenv(s.env) != "" {
			environ = append(environ, s.env+"="+ts.Getenv(s.env))
		}
	}
	return environ
}
