package cli

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// ownGroup puts a command into a process group of its own, so that Ctrl-C at
// the terminal reaches the worker alone, and lets it die with the worker.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// runBound runs a command on one thread of the system: the kernel takes the
// end of the thread that started the command for the end of its parent.
func runBound(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

// killTree kills a command and what it started.
func killTree(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
