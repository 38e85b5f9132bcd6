package docs_test

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// inOwnNetwork calls run, which starts processes, where they have a loopback
// interface to themselves: the ports of a page are then free, whatever else runs
// on the machine. Where that is not allowed, run is called as it is.
func inOwnNetwork(run func() error) error {
	result := make(chan error, 1)
	go func() {
		// The thread is never given back: it ends with the goroutine, and its
		// network with the processes that it started.
		runtime.LockOSThread()
		if unix.Unshare(unix.CLONE_NEWNET) == nil {
			if err := raiseLoopback(); err != nil {
				result <- err
				return
			}
		}
		result <- run()
	}()
	return <-result
}

// raiseLoopback makes 127.0.0.1 reachable in a new network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
