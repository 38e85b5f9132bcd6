// Package cli is the command line of Felix: the tree of commands, how they
// take their settings (flag, then environment, then context), what they print
// and what they exit with.
//
// The tree is data: tests and the generated reference walk it. cmd/felix only
// calls [Main].
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
)

// An App is everything outside a command that it may touch. Tests make their
// own.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Getenv reads one environment variable, "" when it is not set.
	Getenv func(string) string
	// Environ lists all of them, NAME=value.
	Environ func() []string
	// Dir is the working directory, from which relative paths are taken.
	Dir string
	// Self is the path of this program, for commands that run it again.
	Self string

	// StdinTTY, StdoutTTY and StderrTTY say which of the three a person sits
	// at. Only then are bytes escaped, bars drawn and colours used.
	StdinTTY, StdoutTTY, StderrTTY bool
	// Size is the terminal's width and height in characters; nil where there
	// is none.
	Size func() (width, height int)

	// Force is closed when the user insists on ending, by a second signal.
	Force <-chan struct{}

	flags globalFlags
}

// forceGrace is how long a command may tidy up after a second signal.
const forceGrace = 2 * time.Second

// errInterrupted is why the context of a command ends on a signal.
var errInterrupted = errors.New("interrupted")

// Main runs the command line of this process and returns its exit code.
//
// The first interrupt or termination signal ends the command's context, a
// second closes Force, and the process is gone at a third, or a little later.
func Main() int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "felix: find the working directory:", err)
		return ExitOther
	}
	self, err := thisProgram(os.Args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "felix: find this program:", err)
		return ExitOther
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	force := make(chan struct{})
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		close(force)
		select {
		case <-signals:
		case <-time.After(forceGrace):
		}
		os.Exit(ExitOther)
	}()
	app := &App{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Environ: os.Environ, Dir: dir, Self: self,
		StdinTTY:  term.IsTerminal(os.Stdin.Fd()),
		StdoutTTY: term.IsTerminal(os.Stdout.Fd()),
		StderrTTY: term.IsTerminal(os.Stderr.Fd()),
		Size:      terminalSize,
		Force:     force,
	}
	return app.Run(ctx, os.Args[1:])
}

// thisProgram is the path of a program that was started under a name.
func thisProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return os.Executable()
	}
	return filepath.Abs(path)
}

// terminalSize asks whichever of the standard streams is a terminal.
func terminalSize() (width, height int) {
	for _, f := range []*os.File{os.Stdout, os.Stderr, os.Stdin} {
		if w, h, err := term.GetSize(f.Fd()); err == nil && w > 0 {
			return w, h
		}
	}
	return defaultWidth, defaultHeight
}

// The size assumed where no terminal tells.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// width is how many characters fit in a line of a person's terminal.
func (a *App) width() int {
	if a.Size == nil {
		return defaultWidth
	}
	w, _ := a.Size()
	return w
}

// Run carries out one command line (without the program's name) and returns
// its exit code. What went wrong is told on Stderr.
func (a *App) Run(ctx context.Context, args []string) int {
	a.flags = globalFlags{}
	root := a.Root()
	root.SetArgs(append([]string{}, negativeDelta(args)...)) // never nil, which would mean os.Args
	_, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	return a.report(err, a.flags.json || asksJSON(args))
}

// asksJSON looks for --json in a command line that could not be parsed whole.
func asksJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}
