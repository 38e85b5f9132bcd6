package quic

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/felixlog/felix/transport/udp"
)

// kernelBuffers asks the kernel for a socket's buffers, in bytes.
func kernelBuffers(t *testing.T, c *udp.Conn) (receive, send int) {
	t.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed [2]error
	if err := rc.Control(func(fd uintptr) {
		receive, failed[0] = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		send, failed[1] = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	}); err != nil {
		t.Fatal(err)
	}
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	return receive, send
}
