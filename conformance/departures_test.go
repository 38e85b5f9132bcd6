package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
)

// TestHalfFrames leaves streams in the middle of a header and of a payload
// (BR-05). The node may wait for the rest for as long as it documents; when
// the client gives up, nothing of them may stay.
func TestHalfFrames(t *testing.T) {
	h := newHostile(t)
	h.legacy().wantAlive()
	check := flatness(t, 16<<20)
	whole := acked(1, "s", strings.Repeat("x", 4096)).Frame().Append(nil)
	c := dialRaw(t, h.node)
	var streams []*rawStream
	for _, n := range []int{0, 1, 3, 11, 12, 13, 500} {
		for range 40 {
			s := c.session()
			s.bytes(whole[:n])
			streams = append(streams, s)
		}
	}
	h.bystander.wantAlive()
	for i, s := range streams {
		switch i % 3 {
		case 0:
			s.abandon()
		case 1:
			// An end inside a header is a clean end of input; inside a
			// payload it is an error. Either way the stream is over.
			s.fin()
			s.wantEnd()
		case 2: // the connection's end takes care of it
		}
	}
	c.quic.CloseWithError(0, "")
	check()
	h.bystander.wantAlive()
}

// TestHalfBatchIsNotStored resets a stream in the middle of a publish batch
// (BR-07): nothing of it may reach anybody.
func TestHalfBatchIsNotStored(t *testing.T) {
	h := newHostile(t)
	sub := h.session()
	sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
	sub.frame()
	events := h.acceptEvents()
	events.frame()
	whole := acked(1, "s", "never", strings.Repeat("x", 100_000), "never").Frame().Append(nil)
	for i := range 60 {
		s := h.session()
		s.bytes(whole[:len(whole)-1-i*1500])
		if i%2 == 0 {
			s.both.CancelWrite(7)
		} else {
			s.fin()
		}
		s.wantEnd()
	}
	s := h.session()
	s.frames(acked(2, "s", "whole").Frame())
	s.frame()
	e, err := raw.ParseEvents(events.frame())
	if err != nil || len(e.Records) != 1 || string(e.Records[0]) != "whole" {
		t.Fatalf("first event after the halves: %v, %v", e, err)
	}
}

// TestSubscriberGoesAway ends event streams and connections in the middle of
// delivery (BR-07): their subscriptions go, others miss nothing.
func TestSubscriberGoesAway(t *testing.T) {
	h := newHostile(t)
	stays := h.session()
	stays.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
	stays.frame()
	events := h.acceptEvents()
	events.frame()
	publisher := h.session()
	check := flatness(t, 32<<20)
	const rounds = 120
	for i := range rounds {
		c := dialRaw(t, h.node)
		sub := c.session()
		sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
		sub.fin()
		sub.frame()
		leaving := c.acceptEvents()
		leaving.frame()
		publisher.frames(acked(uint64(i), "s", strings.Repeat("x", 20_000)).Frame())
		publisher.frame()
		switch i % 3 {
		case 0: // refuses the rest in the middle of the frame
			leaving.receive.CancelRead(3)
		case 1: // after one frame
			leaving.frame()
			leaving.receive.CancelRead(0)
		case 2: // connection and all
		}
		if i%3 == 2 {
			c.quic.CloseWithError(0, "")
		} else {
			// One more, so that the refusal meets a writer.
			publisher.frames(acked(uint64(rounds+i), "s", "small").Frame())
			publisher.frame()
			c.quic.CloseWithError(0, "")
		}
		for got := 0; got < 2-i%3/2; {
			e, err := raw.ParseEvents(events.frame())
			if err != nil {
				t.Fatal(err)
			}
			got += len(e.Records)
		}
	}
	until(t, "only one subscription is left", func() error {
		if n := h.node.Stats().Subscribe.Subscriptions; n != 1 {
			return fmt.Errorf("%d subscriptions", n)
		}
		return nil
	})
	check()
}
