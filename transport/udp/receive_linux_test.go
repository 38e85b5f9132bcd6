package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever was sent, in runs or alone, by whomever, arrives packet by packet,
// each sender's in its order, on every path and by every method.
func TestEveryPathDeliversTheSame(t *testing.T) {
	readers := map[string]func(testing.TB, *Conn, int, int) []packet{"batches": readBatches, "singles": readSingles}
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for reading, read := range readers {
			t.Run(addr+" "+reading, func(t *testing.T) {
				eachVariant(t, func(t *testing.T, o Options) {
					c := open(t, addr, o)
					sent := make(map[netip.AddrPort][]string)
					total := 0
					// Rounds small enough for the kernel's buffer.
					r := rand.New(rand.NewPCG(1, 2))
					for range 20 {
						senders := []*sender{newSender(t, c), newSender(t, c), newSender(t, c)}
						expected := 0
						for range 12 {
							s := senders[r.IntN(len(senders))]
							packets := sendSome(t, s, r)
							sent[s.addr()] = append(sent[s.addr()], packets...)
							expected += len(packets)
						}
						got := make(map[netip.AddrPort][]string)
						for _, p := range read(t, c, expected, 2000) {
							got[p.from] = append(got[p.from], p.data)
						}
						for _, s := range senders {
							if !slices.Equal(got[s.addr()], sent[s.addr()]) {
								t.Fatalf("of %v:\n got %q\nsent %q", s.addr(), brief(got[s.addr()]), brief(sent[s.addr()]))
							}
							delete(got, s.addr())
						}
						if len(got) > 0 {
							t.Fatalf("packets of nobody: %q", got)
						}
						total += expected
					}
					n := c.Counters()
					if n.Packets != uint64(total) || n.Truncated != 0 || n.Reads == 0 || n.Reads > n.Packets {
						t.Errorf("counters %+v after %d packets", n, total)
					}
					if o.Poll == 0 && n.PollHits+n.PollMisses > 0 {
						t.Errorf("counters %+v: polls where none are wanted", n)
					}
				})
			})
		}
	}
}

// sendSome sends a datagram, empty perhaps, or a run with a short last packet
// perhaps, and returns its packets.
func sendSome(t *testing.T, s *sender, r *rand.Rand) []string {
	t.Helper()
	if r.IntN(3) == 0 {
		b := randomBytes(r, []int{0, 1, r.IntN(1400), 1400}[r.IntN(4)])
		s.send(t, b)
		return []string{string(b)}
	}
	segment := 1 + r.IntN(1400)
	b := randomBytes(r, 1+r.IntN(min(60*segment, 30_000)))
	s.send(t, b, segmented(segment))
	var out []string
	for p := range slices.Chunk(b, segment) {
		out = append(out, string(p))
	}
	return out
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func brief(packets []string) []string {
	var out []string
	for _, p := range packets {
		out = append(out, fmt.Sprintf("%d bytes %.8q", len(p), p))
	}
	return out
}

// Each packet of a run carries the run's ECN mark, in either IP version, and
// nothing of the coalescing.
func TestECN(t *testing.T) {
	const ect0, ce = 2, 3
	native := func(m byte) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(m)) }
	for _, c := range []struct {
		addr                string
		level, option, send int
		body                func(mark byte) []byte
		arrives             func(mark byte) []byte
	}{
		{"127.0.0.1:0", unix.IPPROTO_IP, unix.IP_RECVTOS, unix.IP_TOS,
			func(m byte) []byte { return []byte{m} },
			func(m byte) []byte { return cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{m}) }},
		{"[::1]:0", unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, unix.IPV6_TCLASS,
			native,
			func(m byte) []byte { return cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, native(m)) }},
	} {
		t.Run(c.addr, func(t *testing.T) {
			eachVariant(t, func(t *testing.T, o Options) {
				conn := open(t, c.addr, o)
				if err := setOption(conn.UDPConn, c.level, c.option, 1); err != nil {
					t.Fatal(err)
				}
				s := newSender(t, conn)
				mark := func(m byte) []byte { return cmsg(c.level, c.send, c.body(m)) }
				s.send(t, make([]byte, 1000), segmented(300), mark(ect0)) // 4 packets
				s.send(t, make([]byte, 900), segmented(300), mark(ce))    // 3 packets
				s.send(t, make([]byte, 10), mark(ect0))
				for i, p := range readBatches(t, conn, 8, 1452) {
					want := c.arrives(ect0)
					if i >= 4 && i < 7 {
						want = c.arrives(ce)
					}
					if p.oob != string(want) {
						t.Errorf("packet %d has control messages %x, want %x", i, p.oob, want)
					}
				}
			})
		})
	}
}

// A packet that does not fit is dropped and counted, and costs its
// neighbours nothing.
func TestPacketsTooLargeAreDropped(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		fill := func(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }
		s.send(t, fill(100, 'a'))
		s.send(t, fill(101, 'b'))
		s.send(t, fill(99, 'c'))
		s.send(t, fill(250, 'd'), segmented(200)) // 200 and 50
		s.send(t, fill(100, 'e'))
		got := ""
		for _, p := range readBatches(t, c, 4, 100) {
			got += fmt.Sprintf("%d%c ", len(p.data), p.data[0])
			if strings.Trim(p.data, p.data[:1]) != "" {
				t.Errorf("mixed packet %q", p.data)
			}
		}
		if want := "100a 99c 50d 100e "; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := c.Counters(); n.Truncated != 2 || n.Packets != 4 {
			t.Errorf("counters %+v, want 2 dropped of 6", n)
		}
	})
}

// Readers of single packets are told, as package net tells them.
func TestSinglePacketsAreCutAndFlagged(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		s.send(t, []byte("0123456789"))
		s.send(t, []byte("abc"))
		b := make([]byte, 4)
		n, _, flags, from, err := c.ReadMsgUDP(b, nil)
		if err != nil || string(b[:n]) != "0123" || flags&unix.MSG_TRUNC == 0 || from.AddrPort() != s.addr() {
			t.Errorf("got %q, flags %#x, from %v, %v", b[:n], flags, from, err)
		}
		n, err = c.Read(b)
		if err != nil || string(b[:n]) != "abc" {
			t.Errorf("got %q, %v", b[:n], err)
		}
		if got := c.Counters(); got.Truncated != 1 || got.Packets != 2 {
			t.Errorf("counters %+v", got)
		}
	})
}

// Coalescing is worth its name: a run costs one read, not one a packet.
func TestRunsSaveReads(t *testing.T) {
	c := open(t, "127.0.0.1:0", Options{})
	s := newSender(t, c)
	s.send(t, make([]byte, 40*1000), segmented(1000))
	readBatches(t, c, 40, 1452)
	if n := c.Counters(); n.Reads != 1 || n.Packets != 40 {
		t.Errorf("counters %+v, want 40 packets in one read", n)
	}
}

func TestDeadlineAndClose(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		ms := newMessages(8, 1452)
		s.send(t, []byte("x"))
		if n, err := c.ReadBatch(ms, 0); n != 1 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		expectError := func(what string, want error) {
			t.Helper()
			n, err := c.ReadBatch(ms, 0)
			if _, ok := err.(net.Error); !ok || n != 0 || !errors.Is(err, want) {
				t.Errorf("%s: got %d, %v, want %v", what, n, err, want)
			}
			// quic-go looks at all messages after an error.
			for i := range ms {
				if ms[i].N != 0 || ms[i].NN != 0 {
					t.Errorf("%s: message %d is not empty", what, i)
				}
			}
			if _, _, err := c.ReadFromUDPAddrPort(make([]byte, 1)); !errors.Is(err, want) {
				t.Errorf("%s: single read got %v, want %v", what, err, want)
			}
		}
		c.SetReadDeadline(time.Now())
		expectError("deadline", os.ErrDeadlineExceeded)
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		expectError("deadline while parked", os.ErrDeadlineExceeded)
		c.SetReadDeadline(time.Time{})
		ended := make(chan error, 1)
		go func() {
			_, err := c.ReadBatch(newMessages(1, 1), 0)
			ended <- err
		}()
		c.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("parked read: %v, want net.ErrClosed", err)
			}
		case <-time.After(patience):
			t.Fatal("close does not end a parked read")
		}
		expectError("close", net.ErrClosed)
		if _, err := c.ReadBatch(ms, unix.MSG_PEEK); !errors.Is(err, unix.EINVAL) {
			t.Errorf("flags: %v, want EINVAL", err)
		}
	})
}

// Readers may be many; each packet goes to one of them.
func TestConcurrentReaders(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		const rounds, perRound = 50, 10
		var mu sync.Mutex
		seen := make(map[string]int)
		var readers sync.WaitGroup
		note := func(b []byte) {
			mu.Lock()
			seen[string(b)]++
			mu.Unlock()
		}
		readers.Go(func() {
			ms := newMessages(3, 1452)
			for {
				n, err := c.ReadBatch(ms, 0)
				if err != nil {
					return
				}
				for _, m := range ms[:n] {
					note(m.Buffers[0][:m.N])
				}
			}
		})
		readers.Go(func() {
			b := make([]byte, 1452)
			for {
				n, _, err := c.ReadFromUDPAddrPort(b)
				if err != nil {
					return
				}
				note(b[:n])
			}
		})
		for i := range rounds {
			var run []byte
			for j := range perRound {
				run = fmt.Appendf(run, "%04d", i*perRound+j)
			}
			s.send(t, run, segmented(4))
		}
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			n := len(seen)
			mu.Unlock()
			if n == rounds*perRound {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d packets of %d", n, rounds*perRound)
			}
		}
		c.Close()
		readers.Wait()
		for p, n := range seen {
			if n != 1 {
				t.Errorf("packet %s was read %d times", p, n)
			}
		}
	})
}

// Reading allocates nothing, once the peer is known.
func TestReadBatchAllocatesNothing(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		ms := newMessages(8, 1452)
		const runs = 20
		for range runs + 2 {
			s.send(t, make([]byte, 8*100), segmented(100))
		}
		read := func() {
			for n := 0; n < 8; {
				got, err := c.ReadBatch(ms[n:], 0)
				if err != nil {
					t.Fatal(err)
				}
				n += got
			}
		}
		read()
		if n := testing.AllocsPerRun(runs, read); n != 0 {
			t.Errorf("%v allocations for 8 packets", n)
		}
	})
}

// With room for them, packets larger than the reader's buffers come whole, in
// buffers of their own, and their neighbours as ever.
func TestOversizePacketsComeWhole(t *testing.T) {
	eachVariant(t, func(t *testing.T, o Options) {
		o.Oversize = 300
		c := open(t, "127.0.0.1:0", o)
		s := newSender(t, c)
		fill := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(i)
			}
			return b
		}
		sizes := []int{100, 101, 301, 99, 300, 5}
		for _, n := range sizes {
			s.send(t, fill(n))
		}
		got := ""
		for _, p := range readBatches(t, c, 5, 100) {
			got += fmt.Sprint(len(p.data), " ")
			if p.data != string(fill(len(p.data))) {
				t.Errorf("packet of %d bytes is mixed up", len(p.data))
			}
		}
		if want := "100 101 99 300 5 "; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := c.Counters(); n.Truncated != 1 || n.Packets != 5 {
			t.Errorf("counters %+v, want 1 dropped of 6", n)
		}
	})
}
