//go:build !linux

package udp

import (
	"errors"
	"net"
)

// The system's limit of socket buffers, as BSD and macOS name it.
const (
	receiveSetting = "kern.ipc.maxsockbuf"
	sendSetting    = "kern.ipc.maxsockbuf"
)

// A socketBuffer is a buffer by the method that sets it.
type socketBuffer struct{ setter func(int) error }

func kernelBuffers(u *net.UDPConn) (receive, send kernelBuffer) {
	return socketBuffer{u.SetReadBuffer}, socketBuffer{u.SetWriteBuffer}
}

func (b socketBuffer) set(n int) error { return b.setter(n) }
func (b socketBuffer) force(int) error { return errors.ErrUnsupported }
func (b socketBuffer) size() int       { return 0 }
