//go:build !unix

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup leaves a command as it is: there are no process groups here.
func ownGroup() *syscall.SysProcAttr { return nil }

func runBound(cmd *exec.Cmd) error { return cmd.Run() }

// killTree kills a command.
func killTree(p *os.Process) error { return p.Kill() }
