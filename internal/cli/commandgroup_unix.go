//go:build unix && !linux

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts a command into a process group of its own, so that Ctrl-C at
// the terminal reaches the worker alone.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func runBound(cmd *exec.Cmd) error { return cmd.Run() }

// killTree kills a command and what it started.
func killTree(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
