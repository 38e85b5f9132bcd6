package udp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel had to cut cannot be taken apart.
func TestCutRunsAreDropped(t *testing.T) {
	c := open(t, "127.0.0.1:0", Options{})
	s := newSender(t, c)
	for i := range slots {
		c.rx.iovs[2*i].SetLen(500)
	}
	s.send(t, make([]byte, 1000), segmented(300))
	s.send(t, []byte("small"))
	if got := readBatches(t, c, 1, 1452); got[0].data != "small" {
		t.Errorf("got %d bytes", len(got[0].data))
	}
	if n := c.Counters(); n.Truncated != 1 || n.Packets != 1 {
		t.Errorf("counters %+v", n)
	}
	// So with control messages that are missing, the segment size perhaps.
	s.send(t, []byte("more"))
	c.rx.mu.Lock()
	defer c.rx.mu.Unlock()
	if err := c.rx.read(slots); err != nil {
		t.Fatal(err)
	}
	c.rx.msgs[0].hdr.Flags |= unix.MSG_CTRUNC
	c.rx.runs.next, c.rx.runs.count = 0, c.rx.n
	if c.rx.nextRun() {
		t.Error("a run without all its control messages is used")
	}
}

func TestControlMessages(t *testing.T) {
	tos := cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{2})
	info := cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12))
	gro := cmsg(unix.IPPROTO_UDP, unix.UDP_GRO, binary.NativeEndian.AppendUint32(nil, 1500))
	for _, order := range [][][]byte{{tos, gro, info}, {gro, tos, info}, {tos, info, gro}} {
		rest, segment := cutSegmentSize(slices.Concat(order...))
		if segment != 1500 || string(rest) != string(tos)+string(info) {
			t.Errorf("segment %d, rest %x", segment, rest)
		}
	}
	if rest, segment := cutSegmentSize(nil); len(rest) != 0 || segment != 0 {
		t.Errorf("of nothing: segment %d, rest %x", segment, rest)
	}
	if rest, segment := cutSegmentSize(slices.Clone(tos)); segment != 0 || string(rest) != string(tos) {
		t.Errorf("of no run: segment %d, rest %x", segment, rest)
	}
	if n := segmentSize(slices.Concat(info, segmented(1234), tos)); n != 1234 {
		t.Errorf("segment size of a send: %d", n)
	}
	if n := segmentSize(tos); n != 0 {
		t.Errorf("segment size of a plain send: %d", n)
	}
}
