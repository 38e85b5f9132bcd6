//go:build !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// dieWithParent relies on the child to notice that its standard input ended.
func dieWithParent(*exec.Cmd) {}

func bind(int) (restore func() error, err error) {
	return nil, errors.New("binding a process to a CPU needs Linux")
}

// CPUs reports no CPU to bind to.
func CPUs() ([]int, error) { return nil, nil }

func peakRSS(*os.ProcessState) uint64 { return 0 }
