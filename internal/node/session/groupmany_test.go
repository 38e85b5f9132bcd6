package session_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/wire"
)

// Polls of one stream are bounded: what comes behind waits unread until one of
// them is answered, and all of them are in the end.
func TestPollsOfOneStreamAreBounded(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	const polls, bound = 70, 64
	var out []byte
	for i := range uint64(polls) {
		out = wire.AppendMessage(out, p.poll(i, 1, long))
	}
	out = wire.AppendMessage(out, &wire.GroupDescribe{GroupRef: p.group("g"), RequestID: 99})
	l.send(out)
	waitingPolls(t, n, bound)
	p.produce(letters(polls)...)
	seen, offsets := map[uint64]bool{}, map[uint64]bool{}
	for described := false; len(seen) < polls || !described; {
		switch m := l.message().(type) {
		case *wire.GroupInfo:
			described = true
			if len(seen) < polls-bound {
				t.Fatalf("a request behind %d polls was read with %d of them answered", polls, len(seen))
			}
		case *wire.GroupRecords:
			if seen[m.RequestID] || len(m.Records) != 1 || offsets[m.Records[0].Offset] {
				t.Fatalf("poll %d: %+v", m.RequestID, m)
			}
			seen[m.RequestID], offsets[m.Records[0].Offset] = true, true
		default:
			t.Fatalf("answer %+v", m)
		}
	}
}

// A thousand polls that wait cost a goroutine each and nothing else: while
// nothing happens no timer is set that an idle node does not set.
func TestThousandWaitingPolls(t *testing.T) {
	clock := newHandClock()
	n := startGroups(t, felixtest.WithClock(clock))
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token())
	l.polled(p.poll(0, 1, 0), "0:a:1")
	l.settled(&wire.GroupAck{GroupRef: p.group("g"), RequestID: 1}, 1)
	// timers advances the clock second by second and counts what was set meanwhile.
	timers := func(seconds int) int64 {
		made := clock.made.Load()
		for range seconds {
			clock.advance(time.Second)
		}
		return clock.made.Load() - made
	}
	idle := timers(19)
	const connections, streams, polls = 4, 5, 50
	goroutines := runtime.NumGoroutine()
	var lanes []*lane
	for range connections {
		c := dial(t, n)
		for range streams {
			l := c.login(modern(), n.Token())
			var out []byte
			for i := range uint64(polls) {
				out = wire.AppendMessage(out, c.poll(i, 1, 20*time.Second))
			}
			l.send(out)
			lanes = append(lanes, l)
		}
	}
	const all = connections * streams * polls
	waitingPolls(t, n, all)
	if grown := runtime.NumGoroutine() - goroutines; grown > all+100 {
		t.Errorf("%d goroutines for %d polls", grown, all)
	}
	if busy := timers(19); busy > idle {
		t.Errorf("%d timers were set while nothing happened, %d without polls", busy, idle)
	}
	if got := metric(t, n, "felix_group_polls_waiting"); got != "1000" {
		t.Fatalf("%s polls wait", got)
	}
	clock.advance(2 * time.Second)
	for _, l := range lanes {
		for range polls {
			if r, is := l.message().(*wire.GroupRecords); !is || len(r.Records) != 0 {
				t.Fatalf("answer %+v", r)
			}
		}
	}
	waitFor(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines+100 })
}

// Polls of one connection are bounded, too, and the next one is told to wait.
func TestPollsOfOneConnectionAreBounded(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	const streams, polls = 64, 64
	for range streams {
		l := p.login(modern(), n.Token())
		var out []byte
		for i := range uint64(polls) {
			out = wire.AppendMessage(out, p.poll(i, 1, long))
		}
		l.send(out)
	}
	waitingPolls(t, n, streams*polls)
	l := p.login(modern(), n.Token())
	l.say(p.poll(1, 1, long))
	e := l.message().(*wire.Error)
	if e.Code.Value != "overloaded" || e.Retry.Value != "retry_after" || e.Detail.Value.Reason != "group_polls" || e.Detail.Value.RetryAfterMS == 0 {
		t.Fatalf("one poll more: %+v", e)
	}
	other := dial(t, n)
	other.login(modern(), n.Token()).polled(other.poll(1, 1, 0))
}
