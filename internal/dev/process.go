package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/felixlog/felix/client"
)

// startWithin bounds the start of a process, and stopWithin its orderly end.
const (
	startWithin = 30 * time.Second
	stopWithin  = 20 * time.Second
)

// A Process is a development broker in a process of its own. It can be killed
// without warning and started again on what it left on disk, at the same
// address.
type Process struct {
	command func(args ...string) *exec.Cmd
	dir     string
	port    string // "0" until the first start has chosen one
	args    []string
	said    OutputTail

	cmd    *exec.Cmd
	ended  chan struct{}
	access Access
}

// Spawn starts a broker on the state in dir and waits until it is ready.
// command makes the command that runs felix with the given arguments; further
// arguments of "felix dev" may follow. Its environment is left as it is.
func Spawn(ctx context.Context, command func(args ...string) *exec.Cmd, dir string, args ...string) (*Process, error) {
	p := &Process{command: command, dir: dir, port: "0", args: args}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Start starts the broker again after Kill or Stop, and waits until it is
// ready.
func (p *Process) Start(ctx context.Context) error {
	args := append([]string{"dev", "--json", "--no-context", "--data", p.dir, "--port", p.port, "--http", "0", "--api", "0"}, p.args...)
	cmd := p.command(args...)
	p.said.reset()
	cmd.Stderr = &p.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a broker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a broker: %w", err)
	}
	p.cmd, p.ended = cmd, make(chan struct{})
	ready := make(chan error, 1)
	go func(ended chan struct{}) {
		defer close(ended)
		ready <- p.learn(json.NewDecoder(out))
		_ = cmd.Wait() // how it ended is told by what it said
	}(p.ended)
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("it was not ready within %s", startWithin))
	defer cancel()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("start a broker: %w\n%s", errors.Join(err, p.Kill()), p.Said())
	}
	return nil
}

// learn reads what the broker says when it is ready.
func (p *Process) learn(d *json.Decoder) error {
	var ready Access
	if err := d.Decode(&ready); err != nil {
		return fmt.Errorf("it ended: %w", err)
	}
	_, port, err := net.SplitHostPort(ready.Addr)
	if err != nil {
		return err
	}
	p.access, p.port = ready, port
	return nil
}

// Kill ends the broker without warning, as kill -9 does, and returns when it
// is gone.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("the broker was gone already: %s", p.Said())
	}
	return err
}

// Stop ends the broker in an orderly way, and by force if that takes too long.
// One that is gone is no error.
func (p *Process) Stop() error {
	err := p.cmd.Process.Signal(os.Interrupt)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	if err == nil {
		select {
		case <-p.ended:
			return nil
		case <-timer.C:
		}
	}
	return p.Kill()
}

// Addr is where clients connect, the same after a restart.
func (p *Process) Addr() string { return p.access.Addr }

// Dir is the directory of its state.
func (p *Process) Dir() string { return p.dir }

// Said is the end of what the broker wrote on its standard error since its
// last start.
func (p *Process) Said() string { return p.said.String() }

// Dial opens a client of the broker.
func (p *Process) Dial(ctx context.Context, options ...client.Option) (*client.Client, error) {
	return p.access.Dial(ctx, options...)
}
