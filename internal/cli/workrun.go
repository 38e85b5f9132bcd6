package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/felixlog/felix/client"
)

// A runner runs one command for each record.
type runner struct {
	path           string
	command        []string // with the name first
	dir            string
	environ        []string
	stream, group  string
	stdout, stderr io.Writer
}

// A runResult is how one command ended.
type runResult struct {
	// Status is its exit status, -1 where it was killed or never ran.
	Status int
	took   time.Duration
	// err is nil for status 0.
	err error
}

// errCannotStart marks a command that did not even begin: the fault is the
// worker's, not the record's.
var errCannotStart = errors.New("the command cannot be started")

// killGrace is how long the pipes of a command that ended are waited for, when
// something that it left behind holds them open.
const killGrace = 2 * time.Second

// run runs the command for a record. When ctx ends the command is killed, with
// all that it started in its process group.
func (r *runner) run(ctx context.Context, d *client.Delivery) runResult {
	cmd := exec.CommandContext(ctx, r.path, r.command[1:]...)
	cmd.Args[0] = r.command[0]
	cmd.Dir, cmd.Env = r.dir, r.environment(d)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(d.Payload), r.stdout, r.stderr
	cmd.Cancel = func() error { return killTree(cmd.Process) }
	cmd.WaitDelay = killGrace
	cmd.SysProcAttr = ownGroup()
	began := time.Now()
	err := runBound(cmd)
	result := runResult{Status: -1, took: time.Since(began), err: err}
	if cmd.Process == nil {
		result.err = fmt.Errorf("%w: %w", errCannotStart, err)
		return result
	}
	if cmd.ProcessState != nil {
		result.Status = cmd.ProcessState.ExitCode()
	}
	if result.Status == 0 {
		result.err = nil // also where it did not read all of its input
	}
	return result
}

// environment is that of the worker with what there is to know of a record.
func (r *runner) environment(d *client.Delivery) []string {
	ours := [][2]string{
		{"FELIX_STREAM", r.stream},
		{"FELIX_GROUP", r.group},
		{"FELIX_SHARD", strconv.FormatUint(uint64(d.Shard), 10)},
		{"FELIX_OFFSET", strconv.FormatUint(d.Offset, 10)},
		{"FELIX_ATTEMPTS", strconv.FormatUint(uint64(d.Attempts), 10)},
		{"FELIX_TIMESTAMP", ""},
	}
	if !d.Time.IsZero() {
		ours[len(ours)-1][1] = d.Time.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	environ := slices.DeleteFunc(slices.Clone(r.environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(ours, func(o [2]string) bool { return o[0] == name })
	})
	for _, o := range ours {
		environ = append(environ, o[0]+"="+o[1])
	}
	return environ
}
