//go:build !linux

package quic

import (
	"testing"

	"github.com/felixlog/felix/transport/udp"
)

// kernelBuffers knows only what was set.
func kernelBuffers(_ *testing.T, c *udp.Conn) (receive, send int) { return c.Buffers() }
