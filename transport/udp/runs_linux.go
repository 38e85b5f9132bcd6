package udp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// runs are the messages of the last system call that are not yet handed out.
type runs struct {
	// next is the slot after the current run's; slots from there to count
	// have not been looked at.
	next, count int

	// The current run: what is left of its packets, their size, the control
	// messages that go with each, and the sender. more says that there is a
	// packet left, which may be empty.
	data    []byte
	segment int
	oob     []byte
	from    *peer
	more    bool
}

// nextRun makes the next message the current run, passing over what the
// kernel had to cut; false means that none is left.
func (r *receiver) nextRun() bool {
	s := &r.runs
	for s.next < s.count {
		i := s.next
		s.next++
		m := &r.msgs[i]
		// Without the end of its data, or with control messages missing that
		// may have told the segment size, a run cannot be cut.
		if m.hdr.Flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			r.counts.truncated.Add(1)
			continue
		}
		s.data = r.bufs[i*slotSize : i*slotSize+int(m.n)]
		s.oob, s.segment = cutSegmentSize(r.oob(i)[:int(m.hdr.Controllen)])
		if s.segment <= 0 {
			s.segment = len(s.data)
		}
		s.from = r.peer(i)
		s.more = true
		return true
	}
	return false
}

// nextPacket cuts the next packet off the current run, which has one.
func (s *runs) nextPacket() []byte {
	n := min(s.segment, len(s.data))
	p := s.data[:n]
	s.data = s.data[n:]
	s.more = len(s.data) > 0
	return p
}

// pull returns the next packet, waiting for one; its control messages and
// sender are the current run's. The packet is valid until the next call.
// r.mu is held.
func (r *receiver) pull() ([]byte, error) {
	for !r.runs.more && !r.nextRun() {
		if err := r.read(slots); err != nil {
			return nil, err
		}
		r.runs.next, r.runs.count = 0, r.n
	}
	return r.runs.nextPacket(), nil
}

// ready says that a packet can be had without a system call.
func (r *receiver) ready() bool { return r.runs.more || r.nextRun() }

// cutSegmentSize takes the kernel's segment size out of control messages, in
// place, and leaves the others for the packets. It is 0 if there is none: the
// message is a single packet.
func cutSegmentSize(oob []byte) (rest []byte, segment int) {
	kept := 0
	for left := oob; len(left) >= unix.SizeofCmsghdr; {
		h, body, after, err := unix.ParseOneSocketControlMessage(left)
		if err != nil {
			break
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO {
			segment = segmentValue(body)
		} else {
			kept += copy(oob[kept:], left[:len(left)-len(after)])
		}
		left = after
	}
	return oob[:kept], segment
}

// segmentValue reads the int (from the kernel) or uint16 (to the kernel) of a
// segment size message.
func segmentValue(body []byte) int {
	switch {
	case len(body) >= 4:
		return int(int32(binary.NativeEndian.Uint32(body)))
	case len(body) >= 2:
		return int(binary.NativeEndian.Uint16(body))
	}
	return 0
}

// segmentSize is the packet size by which the kernel is asked to cut what is
// sent with oob, or 0.
func segmentSize(oob []byte) int {
	for len(oob) >= unix.SizeofCmsghdr {
		h, body, after, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_SEGMENT {
			return segmentValue(body[:min(len(body), 2)])
		}
		oob = after
	}
	return 0
}
