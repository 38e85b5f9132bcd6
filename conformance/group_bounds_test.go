package conformance

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// TestPollBounds: how much one answer holds (wire 12.2, 18).
func TestPollBounds(t *testing.T) {
	c := newQueue(t)
	t.Run("records", func(t *testing.T) {
		g := c.in(t).session().talk("records")
		g.publish(1200)
		count := func(most int) int {
			g.frames(raw.JSON(g.request("poll", fmt.Sprintf(`"max_records":%d`, most))))
			return len(strings.Fields(records(t, g.frame())))
		}
		if first, second := count(4294967295), count(1001); first != 1000 || second != 200 {
			t.Errorf("%d and %d records", first, second)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		c := c.in(t)
		g := c.session().talk("bytes")
		g.want("seek", `"start":"latest"`, position(1200, true))
		for i := range 10 {
			g.frames(acked(uint64(i), "s", strings.Repeat("x", 1<<20-100)).Frame())
			g.frame()
		}
		var got []string
		for len(got) < 10 {
			g.frames(raw.JSON(g.request("poll", `"max_records":100`)))
			batch := strings.Fields(records(t, g.frame()))
			if len(batch) == 0 || len(batch) > 4 {
				t.Fatalf("%d records of 1 MiB in one answer after %v", len(batch), got)
			}
			got = append(got, batch...)
		}
		for i, word := range got {
			if want := fmt.Sprint(1200 + i); word != want {
				t.Errorf("record %q, not %s: what did not fit was not delivered", word, want)
			}
		}
	})
	t.Run("a record over the bound comes alone", func(t *testing.T) {
		c := c.in(t)
		g := c.session().talk("alone")
		g.want("seek", `"start":"latest"`, position(1210, true))
		for i, payload := range []string{"small", strings.Repeat("x", 6<<20), "small"} {
			g.frames(acked(uint64(i), "s", payload).Frame())
			g.frame()
		}
		var got []string
		for range 3 {
			g.frames(raw.JSON(g.request("poll", `"max_records":100`)))
			got = append(got, records(t, g.frame()))
		}
		if !slices.Equal(got, []string{"1210", "1211", "1212"}) {
			t.Errorf("%q", got)
		}
	})
	// As base64 it is longer than a frame may be. It must not keep the records
	// behind it from anybody.
	t.Run("a record that fits no answer", func(t *testing.T) {
		c := c.in(t)
		g := c.session().talk("never")
		g.want("seek", `"start":"latest"`, position(1213, true))
		for i, payload := range []string{strings.Repeat("x", 13<<20), "small"} {
			g.frames(acked(uint64(i), "s", payload).Frame())
			g.frame()
		}
		g.want("poll", `"max_records":1`, `{"type":"error","message":"TEXT","code":"limit_exceeded","retry":"retry"}`)
		g.poll(100, "1214")
		g.want("dead_letter", ofOffset(1213), cacheOK)
		g.want("ack", ofOffset(1214), cacheOK)
		g.want("dead_letters", "", deadLetters("1213"))
		g.poll(100, "")
	})
}

// TestInFlightCap: a group with as much unsettled as it may have is given
// nothing new; what it hands back it is given again (wire 12.2, 18).
func TestInFlightCap(t *testing.T) {
	c := newQueue(t, felixtest.WithSetting("group-max-in-flight", "4"))
	g := c.session().talk("g")
	g.publish(10)
	g.poll(3, "0 1 2")
	g.poll(100, "3")
	g.poll(100, "")
	g.want("ack", ofOffset(2), cacheOK)
	g.poll(100, "4")
	g.poll(100, "")
	g.want("nack", ofOffset(0), cacheOK)
	g.poll(100, "0x2")
	// Delayed is unsettled; given up is not.
	g.want("nack", ofOffset(1)+`,"delay_ms":60000`, cacheOK)
	g.poll(100, "")
	g.want("dead_letter", ofOffset(3), cacheOK)
	g.poll(100, "5")
	waiting := g.wait(`"max_records":1`)
	other := c.session().talk("g")
	other.want("ack", ofOffset(4), cacheOK)
	g.polled(waiting, "6")
	other.talk("another").poll(100, "0 1 2 3")
}

// TestWaitingPollsAreCheap: a thousand polls wait at the cost of a goroutine
// or two and a few kilobytes each, and leave nothing behind, nor do they take a
// record along.
func TestWaitingPollsAreCheap(t *testing.T) {
	c := newQueue(t)
	publisher := c.session().talk("g0")
	publisher.wantAlive()
	const connections, streams, polls = 5, 4, 50
	var conns []*rawConn
	var talks []*groupTalk
	for range connections {
		conn := dialRaw(t, c.node)
		conns = append(conns, conn)
		for i := range streams {
			talks = append(talks, conn.session().talk(fmt.Sprint("g", i)))
		}
	}
	check := flatness(t, 8<<20)
	goroutines, heap := runtime.NumGoroutine(), settled()
	for _, g := range talks {
		var frames []raw.Frame
		for range polls {
			frames = append(frames, raw.JSON(g.request("poll", `"max_records":1,`+longWait)))
		}
		g.frames(frames...)
		g.wantAlive()
	}
	const total = connections * streams * polls
	if n := runtime.NumGoroutine() - goroutines; n > 2*total+50 {
		t.Errorf("%d goroutines for %d polls", n, total)
	}
	if n := settled(); n > heap+total*16<<10 {
		t.Errorf("%d bytes of heap for %d polls", n-heap, total)
	}
	for i, g := range talks {
		switch i % 3 {
		case 0:
			g.abandon()
		case 1:
			g.fin()
		}
	}
	for _, conn := range conns {
		conn.quic.CloseWithError(0, "")
	}
	for _, conn := range conns {
		<-conn.quic.Context().Done()
	}
	check()
	publisher.publish(3)
	for i := range streams {
		publisher.talk(fmt.Sprint("g", i)).poll(9, "0 1 2")
	}
}

// TestManyGroups: names cost nothing. More groups than a node keeps at hand
// push out those that hold nothing, and no others.
func TestManyGroups(t *testing.T) {
	c := newQueue(t)
	mine := c.session().talk("mine")
	mine.publish(4)
	mine.poll(3, "0 1 2")
	mine.want("ack", ofOffset(1), cacheOK)
	mine.want("nack", ofOffset(2)+`,"delay_ms":600000`, cacheOK)
	flood := dialRaw(t, c.node).session()
	const groups, batch = 10_200, 100
	for first := 0; first < groups; first += batch {
		var frames []raw.Frame
		for i := range batch {
			frames = append(frames, raw.JSON(fmt.Sprintf(`{"type":"group_dead_letters",%s"request_id":%d}`, inGroup("s", fmt.Sprint("g", first+i)), i)))
		}
		flood.frames(frames...)
		for range batch {
			if f := flood.frame(); f.Type() != "group_dead_letter_list" {
				t.Fatalf("after %d groups: %s", first, f.Describe())
			}
		}
	}
	mine.poll(9, "3")
	mine.want("nack", ofOffset(0)+`,"attempts":1`, cacheOK)
	mine.poll(9, "0x2")
}

// TestPollsThatPileUp: more polls on one stream than a node runs at once all
// get their answer, and no two of them the same record.
func TestPollsThatPileUp(t *testing.T) {
	c := newQueue(t)
	g := c.session().talk("g")
	const polls = 300
	var frames []raw.Frame
	for range polls {
		frames = append(frames, raw.JSON(g.request("poll", `"max_records":1,`+longWait)))
	}
	g.frames(frames...)
	other := c.session()
	for range polls / 10 {
		other.publish(10)
	}
	ids, offsets := make(map[uint64]bool), make(map[string]bool)
	for range polls {
		f := g.frame()
		id, _ := f.Uint("request_id")
		ids[id] = true
		offsets[records(t, f)] = true
	}
	if len(ids) != polls || len(offsets) != polls || offsets[""] {
		t.Errorf("%d answers, %d different records, one empty: %v", len(ids), len(offsets), offsets[""])
	}
	g.wantAlive()
}
