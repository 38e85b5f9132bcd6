package udp

import (
	"bytes"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// ReadBatch waits for packets and fills one message with each: the first of
// its buffers, its control messages and its sender, which is shared between
// packets and must not be changed. A packet larger than the buffer gets one of
// its own, which takes the first's place in the message, up to
// [Options.Oversize]; a larger one is dropped and counted, as is a run of
// packets the kernel had to cut. It returns how many messages it filled, at
// least one. flags must be 0.
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
		switch {
		case len(p) <= len(m.Buffers[0]):
			m.N = copy(m.Buffers[0], p)
		case len(p) <= r.oversize:
			m.Buffers[0] = bytes.Clone(p)
			m.N = len(p)
		default:
			r.counts.truncated.Add(1)
			continue
		}
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
		r.spill(i, true)
	}
	defer func() {
		for i := range want {
			r.lend(i, nil)
			r.spill(i, false)
		}
	}()
	if err := r.read(want); err != nil {
		return 0, err
	}
	for i := range r.n {
		m := &r.msgs[i]
		to, from := &ms[n], ms[i].Buffers[0]
		if m.hdr.Flags&unix.MSG_TRUNC != 0 || int(m.n) > max(len(from), r.oversize) {
			r.counts.truncated.Add(1)
			continue
		}
		to.N = int(m.n)
		switch {
		case to.N > len(from):
			to.Buffers[0] = append(bytes.Clone(from), r.spilled(i)[:to.N-len(from)]...)
		case n != i:
			// A packet before it was dropped: close the gap.
			copy(to.Buffers[0], from[:m.n])
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
	v := &r.iovs[2*i]
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
}

// spill lets slot i read what does not fit its buffer into room of its own.
func (r *receiver) spill(i int, on bool) {
	if r.oversize == 0 {
		return
	}
	n := 1
	if on {
		n = 2
	}
	r.msgs[i].hdr.SetIovlen(n)
}

// spilled is slot i's room for what did not fit.
func (r *receiver) spilled(i int) []byte { return r.bufs[i*r.oversize : (i+1)*r.oversize] }

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
