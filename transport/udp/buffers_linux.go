package udp

import (
	"net"

	"golang.org/x/sys/unix"
)

// The system's limits of socket buffers.
const (
	receiveSetting = "net.core.rmem_max"
	sendSetting    = "net.core.wmem_max"
)

// A socketBuffer is a buffer by its options' numbers.
type socketBuffer struct {
	u                   *net.UDPConn
	option, forceOption int
}

func kernelBuffers(u *net.UDPConn) (receive, send kernelBuffer) {
	return socketBuffer{u, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE},
		socketBuffer{u, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}
}

func (b socketBuffer) set(n int) error   { return setOption(b.u, unix.SOL_SOCKET, b.option, n) }
func (b socketBuffer) force(n int) error { return setOption(b.u, unix.SOL_SOCKET, b.forceOption, n) }

// size is half of what Linux reports, which counts its bookkeeping.
func (b socketBuffer) size() int {
	n, err := getOption(b.u, unix.SOL_SOCKET, b.option)
	if err != nil {
		return 0
	}
	return n / 2
}

func setOption(u *net.UDPConn, level, option, value int) error {
	rc, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := rc.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), level, option, value)
	}); err != nil {
		return err
	}
	return failed
}

func getOption(u *net.UDPConn, level, option int) (value int, err error) {
	rc, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	if err := rc.Control(func(fd uintptr) {
		value, failed = unix.GetsockoptInt(int(fd), level, option)
	}); err != nil {
		return 0, err
	}
	return value, failed
}
