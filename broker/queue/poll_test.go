package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/stream"
)

// A polled is the end of a poll under way.
type polled struct {
	records []Record
	err     error
}

// poll polls in the background.
func (n *node) poll(ctx context.Context, r Ref, o PollOptions) <-chan polled {
	end := make(chan polled, 1)
	go func() {
		records, err := n.Poll(ctx, r, o)
		end <- polled{records, err}
	}()
	return end
}

// parked waits until so many polls wait, each in its place.
func (n *node) parked(r Ref, polls int) {
	n.t.Helper()
	until(n.t, "polls wait", func() bool {
		g := n.find(r)
		defer g.release()
		ws := &g.waiters
		ws.mu.Lock()
		defer ws.mu.Unlock()
		count := 0
		for w := ws.first; w != nil; w = w.next {
			count++
		}
		return count == polls && int(ws.joined.Load()) == polls && g.outboxQuiet()
	})
}

func (g *group) outboxQuiet() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outbox.pending == 0
}

func (n *node) ends(end <-chan polled) polled {
	n.t.Helper()
	select {
	case p := <-end:
		return p
	case <-time.After(patience):
		n.t.Fatal("the poll does not end")
		return polled{}
	}
}

func (n *node) gets(end <-chan polled, want string) []Record {
	n.t.Helper()
	p := n.ends(end)
	if got := shown(p.records); p.err != nil || got != want {
		n.t.Fatalf("polled %q, %v, want %q", got, p.err, want)
	}
	return p.records
}

func waiting(name string, most int) PollOptions {
	return PollOptions{MaxRecords: most, Wait: time.Hour, Holder: holder(name)}
}

// Everything that puts a record within reach wakes a poll that waits: an append,
// a nack, the end of a delay, of a claim, an ack that makes room, a redrive, a
// seek, an answer that could not be sent.
func TestWhatWakesAPoll(t *testing.T) {
	type setting struct {
		*node
		sh *stream.Shard
		r  Ref
	}
	for name, c := range map[string]struct {
		records, claimed int
		before           func(s setting) // with the claims standing
		wake             func(s setting)
		want             string
	}{
		"append": {wake: func(s setting) { s.publish(s.sh, "a", "b") }, want: "0 1"},
		"nack": {records: 1, claimed: 1, wake: func(s setting) {
			s.must(s.Nack(s.r, 0, 1, 0))
		}, want: "0x2"},
		"end of a delay": {records: 1, claimed: 1, before: func(s setting) {
			s.must(s.Nack(s.r, 0, 0, 5*time.Second))
		}, wake: func(s setting) { s.clock.advance(5 * time.Second) }, want: "0x2"},
		"end of a claim":    {records: 1, claimed: 1, wake: func(s setting) { s.clock.advance(20 * time.Second) }, want: "0x2"},
		"ack at the cap":    {records: 4, claimed: 3, wake: func(s setting) { s.acked(s.r, 1) }, want: "3"},
		"skip at the cap":   {records: 4, claimed: 3, wake: func(s setting) { s.must(s.DeadLetter(s.t.Context(), s.r, 1)) }, want: "3"},
		"a poll given back": {records: 1, claimed: 0, before: func(setting) {}, want: "0"},
		"redrive": {records: 1, claimed: 1, before: func(s setting) {
			s.must(s.DeadLetter(s.t.Context(), s.r, 0))
		}, wake: func(s setting) { s.must(s.Redrive(s.t.Context(), s.r, 0)) }, want: "0"},
		"seek": {records: 1, claimed: 1, before: func(s setting) { s.acked(s.r, 0) }, wake: func(s setting) {
			_, err := s.Seek(s.t.Context(), s.r, Position{Kind: Earliest}, false)
			s.must(err)
		}, want: "0"},
		"delete": {records: 1, claimed: 1, before: func(s setting) { s.acked(s.r, 0) }, wake: func(s setting) {
			_, err := s.Delete(s.t.Context(), s.r)
			s.must(err)
		}, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{MaxInFlight: 3, Visibility: 20 * time.Second, MaxWait: time.Hour})
			sh := n.stream("s")
			s := setting{n, sh, n.ref(sh, "g")}
			if c.records > 0 {
				n.fill(sh, c.records)
			}
			if got := len(n.take(s.r, max(c.claimed, 1))); got != max(c.claimed, min(c.records, 1)) {
				t.Fatalf("claimed %d", got)
			}
			if c.wake == nil {
				g := n.find(s.r)
				claim := Record{Record: stream.Record{Offset: 0}}
				claim.claim.Offset, claim.claim.Attempts, claim.claim.Fresh, claim.era = 0, 1, true, g.era
				g.release()
				c.wake = func(setting) { n.Unclaim(s.r, []Record{claim}) }
			}
			if c.before != nil {
				c.before(s)
			}
			end := n.poll(t.Context(), s.r, waiting("w", 10))
			n.parked(s.r, 1)
			c.wake(s)
			n.gets(end, c.want)
			if w := n.Stats(); w.Waiting != 0 || w.Wakeups != 1 {
				t.Errorf("%d wait, %d wakeups", w.Waiting, w.Wakeups)
			}
		})
	}
}

// A poll that waits ends at its time, which is bounded, with nothing; and with
// the context, with its cause.
func TestAPollWaitsNoLongerThanItMay(t *testing.T) {
	n := newNode(t, Config{MaxWait: 10 * time.Second})
	r := n.ref(n.stream("s"), "g")
	for _, c := range []struct{ ask, pass time.Duration }{{time.Second, time.Second}, {time.Hour, 10 * time.Second}} {
		end := n.poll(t.Context(), r, PollOptions{MaxRecords: 1, Wait: c.ask, Holder: holder("w")})
		n.parked(r, 1)
		n.clock.advance(c.pass - 1)
		select {
		case p := <-end:
			t.Fatalf("ended early: %+v", p)
		default:
		}
		n.clock.advance(1)
		n.gets(end, "")
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	end := n.poll(ctx, r, waiting("w", 1))
	n.parked(r, 1)
	cancel(gone)
	if p := n.ends(end); p.err != gone || p.records != nil {
		t.Fatalf("%+v", p)
	}
	n.fill(r.Shard.(*stream.Shard), 1)
	if records, err := n.Poll(ctx, r, waiting("w", 1)); err != gone || records != nil {
		t.Fatalf("%v, %v", records, err)
	}
	n.takes(r, 1, "0") // not claimed by the poll that had ended
	if records, err := n.Poll(t.Context(), r, PollOptions{Wait: time.Hour}); err != nil || records != nil {
		t.Fatalf("a poll of no records: %v, %v", records, err)
	}
}

// Polls are served in the order they came, one record wakes one of them, and one
// that finds more than it may take wakes the next.
func TestWaitingPollsAreServedInOrder(t *testing.T) {
	n := newNode(t, Config{MaxWait: time.Hour})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	var ends []<-chan polled
	for i := range 5 {
		ends = append(ends, n.poll(t.Context(), r, waiting(fmt.Sprint(i), 1)))
		n.parked(r, i+1)
	}
	n.publish(sh, "a")
	n.gets(ends[0], "0")
	n.parked(r, 4)
	if st := n.Stats(); st.Wakeups != 1 {
		t.Fatalf("%d wakeups for one record", st.Wakeups)
	}
	n.publish(sh, "b", "c", "d")
	var got []string
	for _, end := range ends[1:4] {
		got = append(got, shown(n.ends(end).records))
	}
	if strings.Join(got, " ") != "1 2 3" {
		t.Fatalf("served %v", got)
	}
	n.parked(r, 1)
	if st := n.Stats(); st.Waiting != 1 {
		t.Fatalf("%d wait", st.Waiting)
	}
	n.publish(sh, "e")
	n.gets(ends[4], "4")
}

// A poll that is woken and leaves at the same moment passes the wake on.
func TestAWakeIsNotLost(t *testing.T) {
	for range campaign(100, 3000) {
		n := newNode(t, Config{MaxWait: time.Hour})
		sh := n.stream("s")
		r := n.ref(sh, "g")
		ctx, cancel := context.WithCancel(t.Context())
		first := n.poll(ctx, r, waiting("1", 1))
		n.parked(r, 1)
		second := n.poll(t.Context(), r, waiting("2", 1))
		n.parked(r, 2)
		go cancel()
		n.publish(sh, "a")
		if p := n.ends(first); len(p.records) > 0 {
			n.Unclaim(r, p.records)
		}
		n.gets(second, "0")
		n.stop()
	}
}

// The answer ends early at its size: what does not fit is not claimed, and does
// not count as handed out.
func TestPollBytes(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	for range 10 {
		n.publish(sh, strings.Repeat("x", 100))
	}
	n.publish(sh, strings.Repeat("y", 1000))
	n.publish(sh, "z")
	poll := func(bytes int, want string) {
		t.Helper()
		records, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 100, MaxBytes: bytes, Holder: holder("c")})
		if got := shown(records); err != nil || got != want {
			t.Fatalf("polled %q, %v, want %q", got, err, want)
		}
	}
	poll(250, "0 1")
	poll(100, "2")
	poll(1, "3")
	poll(700, "4 5 6 7 8 9")
	poll(500, "10") // larger than that, and so alone
	poll(500, "11")
	if i := n.describe(r); i.InFlight != 12 || i.Owed != 0 {
		t.Fatalf("%+v", i)
	}
	for offset := range uint64(12) {
		n.must(n.Nack(r, offset, 1, 0))
	}
	poll(250, "0x2 1x2")
	poll(150, "2x2")
}

// At the bound of unsettled records a poll is empty, and counted.
func TestPollAtTheCap(t *testing.T) {
	n := newNode(t, Config{MaxInFlight: 3})
	sh := n.stream("s")
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.takes(r, 10, "0 1 2")
	n.takes(r, 10, "")
	n.must(n.Nack(r, 1, 0, time.Hour)) // delayed, and still counted
	n.takes(r, 10, "")
	if st := n.Stats(); st.PollsCapped != 2 || st.Claims != 2 {
		t.Fatalf("%+v", st)
	}
	n.acked(r, 0)
	n.takes(r, 10, "3")
}

// Claims, extensions and delays end when they were said to, and no later than
// they may.
func TestClaimsEnd(t *testing.T) {
	n := newNode(t, Config{Visibility: 10 * time.Second, MaxVisibility: time.Minute})
	sh := n.stream("s")
	n.fill(sh, 5)
	r := n.ref(sh, "g")
	for offset, visibility := range []time.Duration{0, 5 * time.Second, time.Hour} {
		records, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 1, Visibility: visibility, Holder: holder("c")})
		if err != nil || shown(records) != fmt.Sprint(offset) {
			t.Fatal(shown(records), err)
		}
	}
	n.takes(r, 2, "3 4")
	if granted, err := n.Extend(r, 3, 1, time.Hour); err != nil || granted != time.Minute {
		t.Fatal(granted, err)
	}
	if granted, err := n.Extend(r, 4, 1, time.Second); err != nil || granted != time.Second {
		t.Fatal(granted, err)
	}
	owed := func(after time.Duration, want string) {
		t.Helper()
		n.clock.advance(after)
		var got []string
		for _, h := range n.describe(r).Held {
			if h.State.String() == "owed" {
				got = append(got, fmt.Sprint(h.Offset))
			}
		}
		if strings.Join(got, " ") != want {
			t.Fatalf("owed %v, want %s", got, want)
		}
	}
	owed(0, "")
	owed(time.Second, "4")
	owed(4*time.Second, "1 4")
	owed(5*time.Second, "0 1 4")
	owed(50*time.Second, "0 1 2 3 4")
	records := n.takes(r, 5, "0x2 1x2 2x2 3x2 4x2")
	if st := n.Stats(); st.Lapsed != 5 || st.Redelivered != 5 || st.Delivered != 10 {
		t.Fatalf("%+v", st)
	}
	n.must(n.Nack(r, 0, records[0].Attempts, time.Hour))
	if next := n.describe(r).NextLapse; next != n.clock.Now().Add(10*time.Second) {
		t.Fatal(next)
	}
	owed(10*time.Second, "1 2 3 4")
	owed(50*time.Second, "0 1 2 3 4") // a delay is bounded too
	if _, err := n.Extend(r, 1, 1, 0); err == nil {
		t.Fatal("an extension by nothing")
	}
}
