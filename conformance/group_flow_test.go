package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// longWait is a wait that no test lives to see the end of; patience lets the
// node grant it.
const longWait = `"wait_ms":600000`

var patient = felixtest.WithSetting("group-max-wait-ms", "600000")

// newQueue is a node with stream "s", on which neither claims nor polls end by
// themselves.
func newQueue(t *testing.T, options ...felixtest.Option) *rawConn {
	t.Helper()
	n := felixtest.Start(t, append([]felixtest.Option{felixtest.Durable(), standing, patient}, options...)...)
	n.CreateStream("s", 1)
	return dialRaw(t, n)
}

// wait starts a poll that finds nothing and so waits, and returns its id. What
// was sent behind it is answered: the node has the poll.
func (g *groupTalk) wait(members string) uint64 {
	g.t.Helper()
	g.frames(raw.JSON(g.request("poll", members+","+longWait)))
	g.wantAlive()
	return g.id
}

// polled reads the answer to the poll of that id.
func (g *groupTalk) polled(id uint64, want string) {
	g.t.Helper()
	f := g.frame()
	if got, _ := f.Uint("request_id"); got != id || records(g.t, f) != want {
		g.t.Fatalf("got %s, want %q under %d", f.Describe(), want, id)
	}
}

// TestAckBehindPoll: what is sent behind a poll that waits is answered before
// it, so that a worker's acks are not held up by its own next poll.
func TestAckBehindPoll(t *testing.T) {
	c := newQueue(t)
	other := c.session()
	other.publish(3)
	g := c.session().talk("g")
	g.poll(3, "0 1 2")
	waiting := g.wait(`"max_records":1`)
	for _, offset := range []uint64{2, 1, 0} {
		g.want("ack", ofOffset(offset), cacheOK)
	}
	second := g.wait(`"max_records":1`)
	g.wantAlive()
	other.publish(1)
	g.polled(waiting, "3") // who came first is served first
	other.publish(1)
	g.polled(second, "4")

	// A client that ends its half still waits for what it asked.
	last := g.wait(`"max_records":1`)
	g.fin()
	other.publish(1)
	g.polled(last, "5")
	g.wantFIN()
}

// TestWhatWakesAPoll: whatever makes a record available.
func TestWhatWakesAPoll(t *testing.T) {
	c := newQueue(t)
	other := c.session().talk("g")
	other.publish(2)
	g := c.session().talk("g")
	other.poll(2, "0 1")
	for _, tc := range []struct{ kind, members, polled string }{
		{"nack", ofOffset(0), "0x2"},
		{"nack", ofOffset(1) + `,"attempts":1,"delay_ms":1`, "1x2"},
		{"extend", ofOffset(0) + `,"attempts":2,"extend_ms":1`, "0x3"},
		{"seek", `"start":"earliest"`, "0 1"},
	} {
		waiting := g.wait(`"max_records":2`)
		other.frames(raw.JSON(other.request(tc.kind, tc.members)))
		if f := other.frame(); f.Type() == "error" {
			t.Fatalf("%s: %s", tc.kind, f.Describe())
		}
		g.polled(waiting, tc.polled)
	}
	other.want("dead_letter", ofOffset(1), cacheOK)
	waiting := g.wait(`"max_records":1`)
	other.want("redrive", ofOffset(1), cacheOK)
	g.polled(waiting, "1")
}

// TestChosenVisibility: a claim stands as long as its poll asked for, not as
// long as others' do.
func TestChosenVisibility(t *testing.T) {
	c := newQueue(t)
	g := c.session().talk("g")
	g.publish(2)
	g.poll(1, "0")
	g.frames(raw.JSON(g.request("poll", `"max_records":1,"visibility_ms":1`)))
	g.polled(g.id, "1")
	g.frames(raw.JSON(g.request("poll", `"max_records":1,`+longWait)))
	g.polled(g.id, "1x2")
	g.wait(`"max_records":1`)
}

// TestReclaim: whose claims a member takes over, and when (wire 12.2).
func TestReclaim(t *testing.T) {
	c := newQueue(t)
	c.session().publish(6)
	member := func(s *rawStream, most int, name, want string) {
		t.Helper()
		g := s.talk("g")
		g.frames(raw.JSON(g.request("poll", fmt.Sprintf(`"max_records":%d,"consumer":%q,"reclaim":true`, most, name))))
		g.polled(g.id, want)
	}
	first := c.session()
	member(first, 3, "w", "0 1 2")
	member(first, 1, "v", "3")
	// Another principal of that name is another member.
	foreign := dialRaw(t, c.node)
	s := foreign.open()
	s.frames(fullAuthFrame(c.node.TokenFor("somebody else", time.Now().Add(time.Hour))))
	s.frame()
	member(s, 1, "w", "4")
	second := dialRaw(t, c.node).session()
	member(second, 2, "w", "0x2 1x2")
	member(second, 2, "w", "2x2 5") // what is still set aside, then the rest
	member(first, 9, "w", "")       // no longer the newest
	member(second, 9, "w", "")
	third := dialRaw(t, c.node).session()
	member(third, 9, "w", "0x3 1x3 2x3 5x2")
}

// TestPollsOfAStoppingNode: a poll that waits is answered empty when the node
// stops, before its connection ends (wire 12.2).
func TestPollsOfAStoppingNode(t *testing.T) {
	c := newQueue(t)
	var talks []*groupTalk
	var ids []uint64
	for i := range 20 {
		g := c.session().talk(fmt.Sprint("g", i%3))
		talks, ids = append(talks, g), append(ids, g.wait(`"max_records":1`))
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); c.node.Stop() }()
	for i, g := range talks {
		g.polled(ids[i], "")
	}
	<-stopped
}

// TestPollOfARemovedStream: a poll that waits is answered when its stream goes.
func TestPollOfARemovedStream(t *testing.T) {
	c := newQueue(t)
	c.node.CreateStream("goes", 1)
	s := c.session()
	s.frames(raw.JSON(`{"type":"group_poll",` + inGroup("goes", "g") + `"max_records":1,` + longWait + `,"request_id":7}`))
	s.wantAlive()
	c.node.RemoveStream("goes")
	if f := s.frame(); f.String("code") != "not_found" && (f.Type() != "group_records" || records(t, f) != "") {
		t.Errorf("answered %s", f.Describe())
	}
	s.wantAlive()
}

// TestAbandonedPoll: a client that no longer wants the answer is given no
// record, however the poll was waiting.
func TestAbandonedPoll(t *testing.T) {
	c := newQueue(t)
	publisher := c.session().talk("g")
	for range 20 {
		s := c.session().talk("g")
		s.wait(`"max_records":9`)
		// What the published client says when its caller cancels a poll.
		s.both.CancelRead(0)
		s.fin()
	}
	// What comes later on the connection is read later: the node knows by now.
	publisher.wantAlive()
	publisher.publish(1)
	publisher.poll(9, "0")
}
