// Package udp is the receive path of QUIC's UDP sockets.
//
// A [Conn] is a *net.UDPConn that reads several packets per system call. On
// Linux the kernel hands over packets already coalesced (UDP_GRO), up to
// 64 KiB at a time, and [Conn.ReadBatch] cuts them apart again; elsewhere the
// same methods read as the system can. Sending, control messages and socket
// options are those of the embedded *net.UDPConn, so that quic-go keeps
// segmentation offload and ECN.
package udp

import (
	"log/slog"
	"sync"
	"time"
)

// DefaultBuffer is the size in bytes asked of the kernel for each of a
// socket's two buffers.
const DefaultBuffer = 8 << 20

// MaxPoll bounds [Options.Poll]: closing a socket and deadlines wait for a
// poll in progress.
const MaxPoll = 2 * time.Millisecond

// Options configure a socket. The zero value is the default.
type Options struct {
	// DisableGRO receives packets one by one, as the wire carried them. It
	// saves the 512 KiB that runs of packets are received into.
	DisableGRO bool
	// Poll is how long a read looks again before it parks its thread, which
	// saves the wake-up (about 75 us) where a core is spare. 0 never polls.
	// Polling adapts: it happens only after recent traffic, only while most
	// polls find a packet, and never on one CPU. At most [MaxPoll].
	Poll time.Duration
	// PollBudget, if set, bounds the sockets that poll at one time.
	PollBudget *PollBudget
	// Oversize is the largest packet, in bytes, that [Conn.ReadBatch] hands on
	// although it is larger than the reader's buffer: such a packet gets a
	// buffer of its own. 0 drops it. On Linux only.
	Oversize int
	// ReceiveBuffer and SendBuffer are bytes of kernel buffer; 0 means
	// [DefaultBuffer]. Halved until the kernel accepts.
	ReceiveBuffer, SendBuffer int
	// Logger receives one warning when the kernel refuses the buffers. Nil
	// is silent.
	Logger *slog.Logger
	// WarnOnce, if set, is shared by sockets that should warn only once
	// between them.
	WarnOnce *sync.Once
}

// Counters count what a socket received since it was opened.
type Counters struct {
	// Reads is the number of system calls that returned packets.
	Reads uint64
	// Packets is the number of packets handed on.
	Packets uint64
	// Truncated is the number of packets or coalesced runs dropped, or cut
	// short for readers that ask so, because they did not fit.
	Truncated uint64
	// PollHits and PollMisses count polls that found a packet, or did not.
	PollHits, PollMisses uint64
}
