package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// How long a started command may take to say it is ready, and everything else
// that a script waits for.
const (
	startTime = 30 * time.Second
	waitTime  = time.Minute
)

// A startedCommand runs beside its script.
type startedCommand struct {
	cmd   *exec.Cmd
	label string
	out   *bufio.Reader // its output behind the first line
	errs  *lockedBuffer
	// end waits for it, and says how it ended: the same at every call.
	end func() (rest []byte, err error)

	mu     sync.Mutex
	judged bool // its end was looked at, or is known to be a bad one
}

// startedCommands are those of a script, by the file with the first line.
type startedCommands map[string]*startedCommand

// backgroundKey is under what the started commands of a script are kept.
const backgroundKey = "felix:started"

// started finds a command by its file.
func started(ts *testscript.TestScript, file string) *startedCommand {
	s := ts.Value(backgroundKey).(startedCommands)[file]
	if s == nil {
		ts.Fatalf("nothing was started with %s", file)
	}
	return s
}

// start runs a command in the background and waits for its first line, which
// it puts into a file: start ready.json felix dev --json. The command is
// interrupted by finish ready.json, or at the end of the script, and must then
// exit with 0.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start FILE command [argument...]")
	}
	s := &startedCommand{cmd: exec.Command(args[1], args[2:]...), label: strings.Join(args[1:], " "), errs: &lockedBuffer{}}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = ts.MkAbs("."), scriptEnviron(ts), s.errs
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	s.out = bufio.NewReader(out)
	s.end = sync.OnceValues(func() ([]byte, error) {
		rest, err := io.ReadAll(s.out)
		return rest, errors.Join(err, s.cmd.Wait())
	})
	first := make(chan error, 1)
	go func() {
		line, err := s.out.ReadString('\n')
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
		s.cmd.Process.Kill()
		s.cmd.Wait()
		ts.Fatalf("start %s: %v\n%s", args[1], err, s.errs)
	}
	ts.Value(backgroundKey).(startedCommands)[args[0]] = s
	ts.Defer(func() {
		if err := s.finish(); err != nil {
			panic(fmt.Sprintf("%s, interrupted: %v\n%s", s.label, err, s.errs))
		}
	})
}

// judge says, once, that the end of the command was looked at.
func (s *startedCommand) judge() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, s.judged = !s.judged, true
	return first
}

// finish interrupts the command and waits for its end, which must be a good
// one. A second time it does nothing.
func (s *startedCommand) finish() error {
	if !s.judge() {
		return nil
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_, err := s.end()
	return err
}

// finish interrupts a started command and waits for its end: finish FILE.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: finish FILE")
	}
	s := started(ts, args[0])
	err := s.finish()
	ts.Logf("[%s]\n%s", s.label, s.errs)
	ts.Check(err)
}

// interrupt sends a started command the signal of Ctrl-C: interrupt FILE.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt FILE")
	}
	ts.Check(started(ts, args[0]).cmd.Process.Signal(os.Interrupt))
}

// terminate sends a started command SIGTERM: terminate FILE.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminate FILE")
	}
	ts.Check(started(ts, args[0]).cmd.Process.Signal(syscall.SIGTERM))
}

// kill9 kills a started command without warning: kill9 FILE.
func kill9(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill9 FILE")
	}
	s := started(ts, args[0])
	s.judge()
	ts.Check(s.cmd.Process.Kill())
	s.cmd.Wait() // its output may live on in what it started
}

// ended waits for the end of a started command and checks its exit code: ended
// 0 FILE, or ended any FILE. FILE then holds its output, FILE.err its standard error.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended CODE|any FILE")
	}
	want, err := strconv.Atoi(args[0])
	if args[0] != "any" {
		ts.Check(err)
	}
	s := started(ts, args[1])
	s.judge()
	rest, err := s.end()
	ts.Logf("[%s]\n%s", s.label, s.errs)
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		ts.Fatalf("%s: %v", s.label, err)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != want && args[0] != "any" {
		ts.Fatalf("%s: exit code %d, want %d", s.label, code, want)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append([]byte(ts.ReadFile(args[1])), rest...), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".err"), []byte(s.errs.String()), 0o600))
}

// said waits until a started command has said something on standard error:
// said FILE PATTERN.
func said(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: said FILE PATTERN")
	}
	s, pattern := started(ts, args[0]), regexp.MustCompile("(?m)"+args[1])
	if !within(func() bool { return pattern.MatchString(s.errs.String()) }) {
		ts.Fatalf("%s did not say %q:\n%s", s.label, args[1], s.errs)
	}
}

// eventually runs a command again and again until it succeeds and prints
// something: eventually PATTERN command [argument...].
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN command [argument...]")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	var out, errs bytes.Buffer
	if !within(func() bool {
		out.Reset()
		errs.Reset()
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), scriptEnviron(ts), &out, &errs
		return cmd.Run() == nil && pattern.Match(out.Bytes())
	}) {
		ts.Fatalf("%s never printed %q, at last\n%s%s", strings.Join(args[1:], " "), args[0], &out, &errs)
	}
}

// gone waits until a process has ended whose number is in a file: gone FILE.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone FILE")
	}
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	if !within(func() bool { return !alive(pid) }) {
		ts.Fatalf("process %s runs on", pid)
	}
}

// within waits until something is so.
func within(so func() bool) bool {
	for deadline := time.Now().Add(waitTime); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// alive says whether a process runs, on Linux: one that ended and was not
// collected yet does not.
func alive(pid string) bool {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(rest, "Z")
}
