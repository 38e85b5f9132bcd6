package udp

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// ReadBatch waits for packets and fills one message with each: the first of
// its buffers, its control messages and its sender, which is shared between
// packets and must not be changed. A packet larger than the buffer is dropped
// and counted, as is a run of packets the kernel had to cut. It returns how
// many messages it filled, at least one. flags must be 0.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	if flags != 0 || len(ms) == 0 {
		return 0, c.readError(syscall.EINVAL)
	}
	r := &c.rx
	r.mu.Lock()
	defer r.mu.Unlock()
	fill := r.fillPackets
	if r.gro {
		fill = r.fillRuns
	}
	for {
		n, err := fill(ms)
		if err != nil {
			// quic-go looks at the messages even so: leave nothing in them.
			for i := range ms {
				ms[i].N, ms[i].NN = 0, 0
			}
			return 0, c.readError(err)
		}
		if n > 0 {
			r.counts.packets.Add(uint64(n))
			return n, nil
		}
	}
}

// fillRuns fills ms from coalesced runs. It waits for the first packet only.
func (r *receiver) fillRuns(ms []ipv4.Message) (n int, err error) {
	for n < len(ms) {
		if n > 0 && !r.ready() {
			break
		}
		p, err := r.pull()
		if err != nil {
			return 0, err
		}
		m := &ms[n]
		if len(p) > len(m.Buffers[0]) {
			r.counts.truncated.Add(1)
			continue
		}
		m.N = copy(m.Buffers[0], p)
		m.NN, m.Flags = copyOOB(m.OOB, r.runs.oob)
		m.Addr = r.runs.from.addr
		n++
	}
	return n, nil
}

// fillPackets reads packets straight into ms.
func (r *receiver) fillPackets(ms []ipv4.Message) (n int, err error) {
	want := min(len(ms), slots)
	for i := range want {
		r.lend(i, ms[i].Buffers[0])
	}
	defer func() {
		for i := range want {
			r.lend(i, nil)
		}
	}()
	if err := r.read(want); err != nil {
		return 0, err
	}
	for i := range r.n {
		m := &r.msgs[i]
		if m.hdr.Flags&unix.MSG_TRUNC != 0 {
			r.counts.truncated.Add(1)
			continue
		}
		to := &ms[n]
		to.N = int(m.n)
		if n != i {
			// A packet before it was dropped: close the gap.
			to.N = copy(to.Buffers[0], ms[i].Buffers[0][:m.n])
		}
		to.NN, to.Flags = copyOOB(to.OOB, r.oob(i)[:int(m.hdr.Controllen)])
		to.Flags |= int(m.hdr.Flags) & unix.MSG_CTRUNC
		to.Addr = r.peer(i).addr
		n++
	}
	return n, nil
}

// lend makes slot i read into b, or into nothing once b is the caller's again.
func (r *receiver) lend(i int, b []byte) {
	r.iovs[i].Base = unsafe.SliceData(b)
	r.iovs[i].SetLen(len(b))
}

// copyOOB copies control messages, or tells that they did not fit.
func copyOOB(dst, oob []byte) (n, flags int) {
	if len(oob) > len(dst) {
		return 0, unix.MSG_CTRUNC
	}
	return copy(dst, oob), 0
}

// readError dresses an error as package net does.
func (c *Conn) readError(err error) error {
	if _, ok := err.(*net.OpError); ok {
		return err
	}
	return &net.OpError{Op: "read", Net: "udp", Source: c.LocalAddr(), Err: err}
}
