package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxLines  = 256             // unread lines of output kept for the parent
	maxLine   = 1 << 20         // bytes of one line of output
	stderrCap = 8 << 10         // last bytes of standard error kept for messages
	killAfter = 2 * time.Second // from the polite request to SIGKILL
)

// A Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	stderr tail
	exited chan struct{}
	err    error // of Wait; read after exited
}

// PID is the operating system's number for the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func (p *Process) reap() {
	p.err = p.cmd.Wait()
	close(p.exited)
}

// Line waits for the next line of standard output that accept takes, and
// fails when the process ends first or ctx does.
func (p *Process) Line(ctx context.Context, accept func(string) bool) (string, error) {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", p.endedEarly(ctx)
			}
			if accept(line) {
				return line, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("%s: no answer: %w%s", p.cmd.Path, context.Cause(ctx), p.said())
		}
	}
}

// Document decodes the first line of standard output that is a JSON object
// into v. It is how a child of this program speaks to its parent.
func (p *Process) Document(ctx context.Context, v any) error {
	line, err := p.Line(ctx, func(s string) bool { return strings.HasPrefix(s, "{") })
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(line), v); err != nil {
		return fmt.Errorf("%s: answer is not the expected document: %w", p.cmd.Path, err)
	}
	return nil
}

func (p *Process) endedEarly(ctx context.Context) error {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.err != nil {
		return fmt.Errorf("%s ended: %w%s", p.cmd.Path, p.err, p.said())
	}
	return fmt.Errorf("%s ended without an answer%s", p.cmd.Path, p.said())
}

func (p *Process) said() string {
	if s := strings.TrimSpace(p.stderr.String()); s != "" {
		return "; it said: " + s
	}
	return ""
}

// Usage is what an ended process used over its whole life.
type Usage struct {
	// CPU is user and system time together.
	CPU time.Duration
	// PeakRSS is the largest resident set in bytes; zero where the system
	// does not report it.
	PeakRSS uint64
}

// Stop closes the child's standard input, asks it to end, kills it when it
// has not after a few seconds, and waits until it is gone. It may be called
// again, and reports the same.
func (p *Process) Stop() Usage {
	// Errors here mean that the process has ended by itself, which is the aim.
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(killAfter, func() { _ = p.cmd.Process.Kill() })
	<-p.exited
	kill.Stop()
	s := p.cmd.ProcessState
	return Usage{CPU: s.UserTime() + s.SystemTime(), PeakRSS: peakRSS(s)}
}

// Gone says how the process ended, in words, or nothing while it runs.
func (p *Process) Gone() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String() + p.said()
	default:
		return ""
	}
}

// Wait waits until the process has ended by itself and reports how, or until
// ctx ends.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("%s: %w%s", p.cmd.Path, p.err, p.said())
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Self is the path of the running program, for children that are this
// program under another command.
func Self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", errors.Join(errors.New("find own executable"), err)
	}
	return path, nil
}

// A tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-stderrCap):]...)
	if over := len(t.buf) - stderrCap; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
