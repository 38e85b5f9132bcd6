package udp

import (
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// slots is how many messages one system call fetches at most: as many as
	// quic-go asks for.
	slots = 8
	// slotSize holds any UDP payload, so that nothing coalesced is cut.
	slotSize = 64 << 10
	// oobSize holds every control message a socket of quic-go asks for: ECN,
	// packet info and the segment size, for both IP versions.
	oobSize = 256
)

// A kernelMessage is the kernel's struct mmsghdr.
type kernelMessage struct {
	hdr unix.Msghdr
	n   uint32
}

// A receiver fetches up to [slots] messages per system call.
//
// With GRO a message is a run: packets of one peer, all of one size but the
// last, end to end. It goes to a slot's buffer and is cut up from there.
// Without GRO a message is a packet and goes to the reader's own buffer.
type receiver struct {
	counts counts
	gro    bool

	mu sync.Mutex // one reader at a time, for everything below

	rc syscall.RawConn
	// fetch is bound once: a closure made per read would be an allocation
	// per read.
	fetch func(fd uintptr) bool

	poll   poller
	budget *PollBudget
	polled bool // during the current read

	// want and flags are fetch's arguments, n and errno its results.
	want  int
	n     int
	errno syscall.Errno

	msgs  [slots]kernelMessage
	iovs  [2 * slots]unix.Iovec        // a slot's buffer, and what it spills into
	names [slots]unix.RawSockaddrInet6 // large enough for IPv4's, too
	oobs  []byte
	bufs  []byte // with GRO slots*slotSize, else slots*oversize

	oversize int // see Options.Oversize

	peers peers
	runs  runs
}

func (r *receiver) init(u *net.UDPConn, o Options) error {
	rc, err := u.SyscallConn()
	if err != nil {
		return err
	}
	r.rc = rc
	r.fetch = r.recvmmsg
	r.poll = newPoller(o.Poll, runtime.GOMAXPROCS(0))
	r.budget = o.PollBudget
	// A kernel before 5.0 does not know the option: read packet by packet.
	r.gro = !o.DisableGRO && setOption(u, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	r.oversize = max(o.Oversize, 0)
	r.oobs = make([]byte, slots*oobSize)
	for i := range r.msgs {
		h := &r.msgs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Iov = &r.iovs[2*i]
		h.SetIovlen(1)
	}
	if r.gro {
		r.bufs = make([]byte, slots*slotSize)
		for i := range slots {
			r.iovs[2*i].Base = &r.bufs[i*slotSize]
			r.iovs[2*i].SetLen(slotSize)
		}
	} else if r.oversize > 0 {
		r.bufs = make([]byte, slots*r.oversize)
		for i := range slots {
			r.iovs[2*i+1].Base = &r.bufs[i*r.oversize]
			r.iovs[2*i+1].SetLen(r.oversize)
		}
	}
	return nil
}

func (r *receiver) coalesced() bool { return r.gro }

// oob is slot i's buffer of control messages.
func (r *receiver) oob(i int) []byte { return r.oobs[i*oobSize : (i+1)*oobSize] }

// read waits for messages in up to n slots. r.mu is held.
func (r *receiver) read(n int) error {
	for i := range n {
		h := &r.msgs[i].hdr
		h.Namelen = uint32(unsafe.Sizeof(r.names[i]))
		h.Control = &r.oobs[i*oobSize]
		h.SetControllen(oobSize)
		h.Flags = 0
	}
	r.want, r.n, r.errno, r.polled = n, 0, 0, false
	if err := r.rc.Read(r.fetch); err != nil {
		return err
	}
	if r.errno != 0 {
		return os.NewSyscallError("recvmmsg", r.errno)
	}
	r.counts.reads.Add(1)
	if r.poll.enabled() {
		r.poll.arrived(time.Now())
	}
	return nil
}

// recvmmsg is what [syscall.RawConn.Read] calls until it returns true; in
// between the goroutine is parked until the socket has something.
func (r *receiver) recvmmsg(fd uintptr) bool {
	if r.try(fd) {
		return true
	}
	if r.polled || !r.poll.want() || !r.budget.acquire() {
		return false
	}
	r.polled = true
	defer r.budget.release()
	for end := time.Now().Add(r.poll.window); time.Now().Before(end); {
		// Whatever else is ready to run goes first.
		runtime.Gosched()
		if r.try(fd) {
			r.poll.hit()
			r.counts.pollHits.Add(1)
			return true
		}
	}
	r.poll.miss()
	r.counts.pollMisses.Add(1)
	return false
}

// try makes one system call; false means that there was nothing to read.
func (r *receiver) try(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.msgs[0])),
			uintptr(r.want), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			r.n = int(n)
		default:
			r.errno = errno
		}
		return true
	}
}

// peer is the sender of slot i's message.
func (r *receiver) peer(i int) *peer {
	name := &r.names[i]
	// The port is big-endian in memory, at the same place in both families.
	port := (*[2]byte)(unsafe.Pointer(&name.Port))
	k := peerKey{port: uint16(port[0])<<8 | uint16(port[1])}
	if name.Family == unix.AF_INET {
		k.v4 = true
		copy(k.ip[:4], (*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr[:])
	} else {
		k.ip, k.zone = name.Addr, name.Scope_id
	}
	return r.peers.lookup(k)
}
