// Package proc starts the servers and clients of a benchmark as processes of
// their own: bound to a CPU where asked, tied to the life of the parent, and
// always reaped.
package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
)

// AnyCPU as a CPU leaves a process free to run wherever the parent may.
const AnyCPU = -1

// A Spec says what to start.
type Spec struct {
	// Path is the executable; Args are its arguments without its name.
	Path string
	Args []string
	// Env is the whole environment; nil is the parent's.
	Env []string
	// Input, if not nil, is one line for the child's standard input, which
	// stays open until Stop. A child of this program takes it with Attend.
	Input []byte
	// CPU is the one CPU the process and all its threads run on, or AnyCPU.
	CPU int
}

// ErrSpawnerClosed is what Start answers after Close.
var ErrSpawnerClosed = errors.New("spawner is closed")

// A Spawner starts processes from one operating-system thread it keeps for
// itself. A child inherits the CPU mask of the thread that forks it, and the
// kernel ties the parent-death signal to that thread, not to the process:
// were it an ordinary thread of the runtime, the runtime could retire it and
// the children would be killed in mid-run.
type Spawner struct {
	requests chan request
	stop     chan struct{}
	stopped  chan struct{}
}

type request struct {
	cmd   *exec.Cmd
	cpu   int
	reply chan error
}

// NewSpawner starts the thread. Close ends it.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request), stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.run()
	return s
}

// Close ends the thread. On Linux the kernel then kills every process that
// the spawner started and that still runs.
func (s *Spawner) Close() {
	close(s.stop)
	<-s.stopped
}

func (s *Spawner) run() {
	defer close(s.stopped)
	// Never unlocked: the thread ends with this goroutine.
	runtime.LockOSThread()
	for {
		select {
		case r := <-s.requests:
			r.reply <- startOn(r.cmd, r.cpu)
		case <-s.stop:
			return
		}
	}
}

// startOn starts cmd with the calling thread's CPU mask narrowed to cpu.
func startOn(cmd *exec.Cmd, cpu int) error {
	if cpu == AnyCPU {
		return cmd.Start()
	}
	restore, err := bind(cpu)
	if err != nil {
		return fmt.Errorf("bind to CPU %d: %w", cpu, err)
	}
	return errors.Join(cmd.Start(), restore())
}

// Start starts the process. The caller must Stop it.
func (s *Spawner) Start(spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	cmd.WaitDelay = killAfter // a grandchild may hold the pipes open
	dieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, stdin: stdin, lines: make(chan string, maxLines), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = outW, &p.stderr
	r := request{cmd: cmd, cpu: spec.CPU, reply: make(chan error, 1)}
	select {
	case s.requests <- r:
		err = <-r.reply
	case <-s.stopped:
		err = ErrSpawnerClosed
	}
	if err := errors.Join(err, outW.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Path, err), out.Close())
	}
	go p.read(out)
	go p.reap()
	if spec.Input != nil {
		// A child that ends before it reads says why to whoever waits for
		// its answer; here it is a broken pipe.
		go func() { _, _ = stdin.Write(append(slices.Clip(spec.Input), '\n')) }()
	}
	return p, nil
}

// read hands on the lines of standard output, and lets go of those nobody
// takes, so that a talkative child never blocks on its pipe.
func (p *Process) read(out io.ReadCloser) {
	defer out.Close()
	defer close(p.lines)
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		select {
		case p.lines <- sc.Text():
		default:
		}
	}
	// A line past the bound ends the scan, not the child's output.
	_, _ = io.Copy(io.Discard, out)
}
