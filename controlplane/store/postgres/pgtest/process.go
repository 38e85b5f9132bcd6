package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// errPortTaken says that somebody else listens on the port.
var errPortTaken = errors.New("port is taken")

// logKept is how many lines of a server's log are kept to explain a failure.
const logKept = 40

// A process is a server that runs. Its log is read until it ends.
type process struct {
	pid   int
	ready chan struct{} // closed when it accepts connections
	ended chan struct{} // closed when it is gone and its log is read

	mu  sync.Mutex
	log []string
}

// begin starts cmd. The goroutine that starts it keeps its thread, because
// Linux ends the child with the thread that made it.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{ready: make(chan struct{}), ended: make(chan struct{})}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		w.Close()
		if err != nil {
			out.Close()
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.read(out)
		_ = cmd.Wait() // how it ended is in the log
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// read follows the log, to its end: that of the last process which holds it.
func (p *process) read(out io.ReadCloser) {
	defer out.Close()
	ready := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		p.mu.Lock()
		if len(p.log) == logKept {
			p.log = p.log[1:]
		}
		p.log = append(p.log, line)
		p.mu.Unlock()
		if !ready && strings.Contains(line, "ready to accept connections") {
			ready = true
			close(p.ready)
		}
	}
	_, _ = io.Copy(io.Discard, out) // behind a line that is too long
}

// serving waits until the server accepts connections.
func (p *process) serving(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("postgres did not become ready: %w\n%s", ctx.Err(), p.tail())
	case <-p.ended:
		if log := p.tail(); strings.Contains(log, "could not bind") || strings.Contains(log, "could not create any TCP/IP sockets") {
			return errPortTaken
		}
		return fmt.Errorf("postgres ended before it was ready\n%s", p.tail())
	}
}

// stop signals the server and waits until it is gone.
func (p *process) stop(sig syscall.Signal) {
	_ = syscall.Kill(p.pid, sig) // it may be gone already
	<-p.ended
}

func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n")
}
