package udp

import (
	"fmt"
	"log/slog"
	"net"
)

// minBuffer is the size in bytes below which asking for less ends.
const minBuffer = 64 << 10

// A kernelBuffer is one of a socket's two buffers.
type kernelBuffer interface {
	// set asks for n bytes; the kernel may refuse, or give less.
	set(n int) error
	// force asks for n bytes beyond the system's limit, which takes a
	// privilege.
	force(n int) error
	// size is the buffer in bytes; 0 where the system does not tell.
	size() int
}

// enlarge makes b as near to want bytes as the kernel lets it, and returns
// what it got.
func enlarge(b kernelBuffer, want int) int {
	got := 0
	for n := want; n >= min(want, minBuffer); n /= 2 {
		if b.set(n) == nil {
			got = n
			break
		}
	}
	if n := b.size(); n > 0 {
		got = n
	}
	if got < want && b.force(want) == nil {
		if n := b.size(); n > 0 {
			got = n
		}
	}
	return got
}

// sizeBuffers enlarges both buffers of u and warns once of what the kernel
// refused.
func sizeBuffers(u *net.UDPConn, o Options) (receive, send int) {
	wantReceive, wantSend := o.ReceiveBuffer, o.SendBuffer
	if wantReceive <= 0 {
		wantReceive = DefaultBuffer
	}
	if wantSend <= 0 {
		wantSend = DefaultBuffer
	}
	in, out := kernelBuffers(u)
	receive, send = enlarge(in, wantReceive), enlarge(out, wantSend)
	if o.Logger == nil || receive >= wantReceive && send >= wantSend {
		return receive, send
	}
	warn := func() { warnBuffers(o.Logger, receive, wantReceive, send, wantSend) }
	if o.WarnOnce != nil {
		o.WarnOnce.Do(warn)
	} else {
		warn()
	}
	return receive, send
}

// warnBuffers says what was refused, what that costs and what to set.
func warnBuffers(log *slog.Logger, receive, wantReceive, send, wantSend int) {
	attrs := make([]any, 0, 6)
	refused := func(name, setting string, got, want int) {
		if got < want {
			attrs = append(attrs,
				slog.Int(name+"_bytes", got),
				slog.String("set_"+name, fmt.Sprintf("sysctl -w %s=%d", setting, want)))
		}
	}
	refused("receive_buffer", receiveSetting, receive, wantReceive)
	refused("send_buffer", sendSetting, send, wantSend)
	log.Warn("the kernel limits UDP buffers below what was asked for: expect packet loss under load", attrs...)
}
