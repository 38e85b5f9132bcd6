package metadata

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/internal/cli"
)

// asFelix makes this test binary be the felix command, so that what is killed
// is built as the tests are, with the race detector if they have it.
const asFelix = "as-felix"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asFelix {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		go endWithParent()
		os.Exit(cli.Main())
	}
	pgtest.Main(m)
}

// endWithParent ends this process when the one that started it is gone, however
// that ended.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// A process is a felix command that can be ended in every way and started again
// with what it has on disk.
type process struct {
	t    testing.TB
	name string
	args []string // those of every start
	env  []string
	log  string // file with all it said

	cmd    *exec.Cmd
	ended  chan struct{}
	ready  chan error
	frozen bool
	said   readyLine
}

// A readyLine is what a server prints when it serves.
type readyLine struct {
	URL       string   `json:"url"`
	Addrs     []string `json:"addrs"`
	Admin     string   `json:"admin_url"`
	Bootstrap string   `json:"bootstrap_url"`
}

// newProcess prepares a process. It is gone at the end of the test at the latest.
func newProcess(t testing.TB, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, args: args, env: env, log: filepath.Join(t.TempDir(), name+".log")}
	t.Cleanup(func() {
		if p.running() {
			p.kill()
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, tail(p.logged(), 8<<10))
		}
	})
	return p
}

// launch starts the process with further arguments, and does not wait.
func (p *process) launch(more ...string) {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(p.t, err)
	defer log.Close()
	cmd := exec.Command(os.Args[0], append(append([]string{asFelix}, p.args...), more...)...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	_, err = cmd.StdinPipe() // kept open for as long as this process lives
	must(p.t, err)
	must(p.t, cmd.Start())
	p.cmd, p.ended, p.ready, p.frozen = cmd, make(chan struct{}), make(chan error, 1), false
	go func() {
		defer close(p.ended)
		var said readyLine
		if err := json.NewDecoder(out).Decode(&said); err != nil {
			p.ready <- fmt.Errorf("it ended: %w", err)
		} else {
			p.said = said
			p.ready <- nil
		}
		_ = cmd.Wait() // how it ended is looked at by who ends it
	}()
}

// serving waits until the process says that it serves.
func (p *process) serving() {
	p.t.Helper()
	select {
	case err := <-p.ready:
		if err != nil {
			p.t.Fatalf("start %s: %v\n%s", p.name, err, tail(p.logged(), 8<<10))
		}
	case <-time.After(patience):
		p.t.Fatalf("start %s: it is not ready\n%s", p.name, tail(p.logged(), 8<<10))
	}
}

func (p *process) start(more ...string) {
	p.t.Helper()
	p.launch(more...)
	p.serving()
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// terminate asks the process to end, and fails the test if it does not do so in
// order.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.gone()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %d:\n%s", p.name, code, tail(p.logged(), 8<<10))
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Errorf("kill %s: %v\n%s", p.name, err, tail(p.logged(), 8<<10))
	}
	p.gone()
}

func (p *process) gone() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end\n%s", p.name, tail(p.logged(), 8<<10))
	}
	if said := p.logged(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic:") || strings.Contains(said, "fatal error:") {
		p.t.Errorf("%s said:\n%s", p.name, tail(said, 32<<10))
	}
}

// freeze stops the process where it is; its connections stay open and are
// silent.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	p.frozen = true
}

func (p *process) thaw() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
	p.frozen = false
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%v to %s: %v\n%s", s, p.name, err, tail(p.logged(), 8<<10))
	}
}

// logged is all the process said, in all its lives.
func (p *process) logged() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// tail is the end of a text.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "..." + text[len(text)-most:]
}
