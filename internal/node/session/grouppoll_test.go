package session_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/wire"
)

// waitingPolls waits until as many polls wait at the node.
func waitingPolls(t *testing.T, n *felixtest.Node, want int) {
	t.Helper()
	waitFor(t, fmt.Sprint(want, " waiting polls"), func() bool { return metric(t, n, "felix_group_polls_waiting") == fmt.Sprint(want) })
}

const long = time.Hour

// A request behind a poll that waits is answered at once; the poll when there
// is a record for it.
func TestAckBehindAWaitingPoll(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token())
	l.polled(p.poll(1, 1, 0), "0:a:1")
	l.say(p.poll(2, 10, long))
	waitingPolls(t, n, 1)
	l.settled(&wire.GroupAck{GroupRef: p.group("g"), Offset: 0, RequestID: 3}, 3)
	l.describe(p)
	p.produce([]byte("b"))
	if got := l.records(2); len(got) != 1 || got[0] != "1:b:1" {
		t.Fatalf("the waiting poll gave %v", got)
	}
	// Without a record it is answered empty when its time is up.
	l.polled(p.poll(4, 10, 10*time.Millisecond))
}

// A poll whose client has gone, or wants no answer any more, claims nothing.
func TestAbandonedPollsClaimNothing(t *testing.T) {
	n := startGroups(t)
	keeper := dial(t, n)
	keeper.produce(letters(1)...)
	settler := keeper.login(modern(), n.Token())
	settler.polled(keeper.poll(1, 1, 0), "0:a:1") // the group exists and has nothing to give
	next := 1
	for what, leave := range map[string]func(p *peer, l *lane){
		"stop sending": func(_ *peer, l *lane) { l.st.CancelRead(0); _ = l.st.CloseWrite() },
		"reset":        func(_ *peer, l *lane) { l.st.CancelWrite(7) },
		"close":        func(p *peer, _ *lane) { _ = p.conn.Close(0, "gone") },
	} {
		p := dial(t, n)
		l := p.login(modern(), n.Token())
		l.say(p.poll(2, 10, long))
		waitingPolls(t, n, 1)
		leave(p, l)
		waitingPolls(t, n, 0)
		keeper.produce([]byte("x"))
		settler.say(keeper.poll(3, 10, 0))
		if got, want := settler.records(3), fmt.Sprintf("%d:x:1", next); len(got) != 1 || got[0] != want {
			t.Fatalf("%s: the next poll gave %v, want %s", what, got, want)
		}
		next++
	}
}

// A FIN behind a poll is no cancel: its answer comes, then the stream ends.
func TestFinBehindAPoll(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token())
	l.polled(p.poll(1, 1, 0), "0:a:1")
	l.say(p.poll(2, 1, long))
	if err := l.st.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	waitingPolls(t, n, 1)
	p.produce([]byte("b"))
	if got := l.records(2); len(got) != 1 || got[0] != "1:b:1" {
		t.Fatalf("the poll gave %v", got)
	}
	l.ended()
}

// A request that ends the stream ends its polls, which are answered empty.
func TestForbiddenRequestEndsPolls(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token("group.consume:group:t1/*"))
	l.polled(p.poll(1, 1, 0), "0:a:1")
	l.say(p.poll(2, 1, long))
	waitingPolls(t, n, 1)
	l.say(&wire.GroupDelete{GroupRef: p.group("g"), RequestID: 3})
	expectError(t, l.message(), "forbidden", "fatal")
	if got := l.records(2); len(got) != 0 {
		t.Fatalf("the poll gave %v", got)
	}
	l.ended()
}

// A node that stops answers the polls that wait empty, and has claimed nothing
// for them.
func TestStopAnswersWaitingPolls(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(1)...)
	var lanes []*lane
	for i := range 20 {
		l := p.login(modern(), n.Token())
		m := p.poll(uint64(i), 1, long)
		m.Group = fmt.Sprint("g", i%3)
		if i < 3 {
			l.polled(m, "0:a:1")
		}
		l.say(m)
		lanes = append(lanes, l)
	}
	waitingPolls(t, n, len(lanes))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	for i, l := range lanes {
		if got := l.records(uint64(i)); len(got) != 0 {
			t.Fatalf("poll %d gave %v", i, got)
		}
	}
	<-stopped
}

// A poll ends with the rights of its token.
func TestPollEndsWithTheToken(t *testing.T) {
	clock := newHandClock()
	n := startGroups(t, felixtest.WithClock(clock))
	p := dial(t, n)
	l := p.login(modern(), n.TokenFor("ada", clock.Now().Add(5*time.Second)))
	l.say(p.poll(1, 1, time.Hour))
	waitingPolls(t, n, 1)
	clock.advance(66 * time.Second)
	expectError(t, l.message(), "unauthenticated", "fatal")
}

// A poll of a stream that is removed says so; where the stream owes another
// answer, for which the refusal would be taken, it is answered empty.
func TestPollOfARemovedStream(t *testing.T) {
	n := startGroups(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateStream("s", 1)
	n.CreateStream("other", 1)
	p := dial(t, n)
	alone, shared := p.login(modern(), n.Token()), p.login(modern(), n.Token())
	alone.say(p.poll(1, 1, long))
	shared.say(p.poll(2, 1, long))
	stays := p.poll(3, 1, long)
	stays.Stream = "other"
	shared.say(stays)
	waitingPolls(t, n, 3)
	n.RemoveStream("s")
	expectError(t, alone.message(), "not_found", "retry_after")
	if got := shared.records(2); len(got) != 0 {
		t.Fatalf("the poll beside another gave %v", got)
	}
	waitingPolls(t, n, 1)
}

// A record that fits no answer does not hold up those behind it, is not lost,
// and the refusal says what to do.
func TestPollOfALargeRecord(t *testing.T) {
	n := startGroups(t, felixtest.WithSetting("max-frame-bytes", "262144"))
	p := dial(t, n)
	p.produce(bytes.Repeat([]byte("x"), 220<<10), []byte("b"), bytes.Repeat([]byte("y"), 120<<10), []byte("d"))
	l := p.login(modern(), n.Token())
	g := p.group("g")
	l.say(p.poll(1, 10, 0))
	e, is := l.message().(*wire.Error)
	if !is || e.Code.Value != "limit_exceeded" || e.Retry.Value != "retry" || !bytes.Contains([]byte(e.Message), []byte("offset 0")) {
		t.Fatalf("poll of a large record: %+v", e)
	}
	l.polled(p.poll(2, 10, 0), "1:b:1")
	l.say(p.poll(3, 10, 0)) // over the bound of an answer, and alone in it
	if r := l.message().(*wire.GroupRecords); len(r.Records) != 1 || len(r.Records[0].Payload) != 120<<10 {
		t.Fatalf("the third record: %d records", len(r.Records))
	}
	l.polled(p.poll(4, 10, 0), "3:d:1")
	l.settled(&wire.GroupDeadLetter{GroupRef: g, Offset: 0, RequestID: 5}, 5)
	for offset := uint64(1); offset < 4; offset++ {
		l.settled(&wire.GroupAck{GroupRef: g, Offset: offset, RequestID: 6}, 6)
	}
	if info := l.describe(p); info.Committed != wire.Some[uint64](4) || info.DeadLetters != 1 {
		t.Fatalf("at the end: %+v", info)
	}
}

// The answer to a poll fits a frame, however small frames are.
func TestPollAnswersFitAFrame(t *testing.T) {
	const frame = 64 << 10
	n := startGroups(t, felixtest.WithSetting("max-frame-bytes", fmt.Sprint(frame)))
	p := dial(t, n)
	var payloads [][]byte
	for i := range 60 {
		payloads = append(payloads, bytes.Repeat([]byte("z"), 1+i%5*4000))
	}
	p.produce(payloads...)
	l := p.login(modern(), n.Token())
	for next := uint64(0); next < uint64(len(payloads)); {
		l.say(p.poll(next, 1000, 0))
		h, payload := l.frame()
		if h.Flags != 0 || len(payload) > frame {
			t.Fatalf("an answer of %d bytes", len(payload))
		}
		m, err := wire.ParseMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		r := m.(*wire.GroupRecords)
		if len(r.Records) == 0 {
			t.Fatalf("nothing at %d", next)
		}
		for _, rec := range r.Records {
			if rec.Offset != next || len(rec.Payload) != len(payloads[next]) {
				t.Fatalf("record %d with %d bytes, want %d with %d", rec.Offset, len(rec.Payload), next, len(payloads[next]))
			}
			next++
		}
	}
}

// A record that could not be sent is owed again, as if it had never been handed
// out: its client does not read its answers and goes away.
func TestUnsentRecordsAreNotClaimed(t *testing.T) {
	n := startGroups(t)
	keeper := dial(t, n)
	keeper.produce(bytes.Repeat([]byte("x"), 300<<10), bytes.Repeat([]byte("y"), 300<<10))
	const window = 16 << 10
	p := dialWith(t, n, quic.ConnOptions{Windows: quic.Windows{Stream: window, Conn: window, InitialStream: window, InitialConn: window}})
	l := p.login(modern(), n.Token())
	l.say(p.poll(1, 1, 0))
	l.say(p.poll(2, 1, 0))
	waitFor(t, "the claims", func() bool { return metric(t, n, "felix_group_claims") == "2" })
	if got := metric(t, n, "felix_group_delivered_records_total"); got != "0" {
		t.Fatalf("%s records count as delivered to a client that reads nothing", got)
	}
	l.st.CancelRead(0)
	waitFor(t, "the claims to be given back", func() bool { return metric(t, n, "felix_group_claims") == "0" })
	settler := keeper.login(modern(), n.Token())
	settler.say(keeper.poll(3, 10, 0))
	r := settler.message().(*wire.GroupRecords)
	if len(r.Records) != 2 || r.Records[0].Offset != 0 || r.Records[0].Attempts != 1 || r.Records[1].Attempts != 1 {
		t.Fatalf("the next poll gave %d records: %+v", len(r.Records), r.Records[0].Attempts)
	}
}

// What one connection asks for and does not read is bounded: polls beyond it are
// answered empty, and their records are for others.
func TestUnreadAnswersAreBounded(t *testing.T) {
	n := startGroups(t)
	keeper := dial(t, n)
	const polls, fit = 12, 8 // 4 MiB each as base64
	for range polls {
		keeper.produce(bytes.Repeat([]byte("x"), 3<<20))
	}
	const window = 16 << 10
	p := dialWith(t, n, quic.ConnOptions{Windows: quic.Windows{Stream: window, Conn: window, InitialStream: window, InitialConn: window}})
	l := p.login(modern(), n.Token())
	for i := range uint64(polls) {
		l.say(p.poll(i, 1, 0))
	}
	waitFor(t, "the claims that fit", func() bool {
		return metric(t, n, "felix_group_claims") == fmt.Sprint(fit) && metric(t, n, `felix_group_requests_total{request="group_poll"}`) == fmt.Sprint(polls)
	})
	settler := keeper.login(modern(), n.Token())
	settler.say(keeper.poll(1, 1, 0))
	if r := settler.message().(*wire.GroupRecords); len(r.Records) != 1 || r.Records[0].Attempts != 1 {
		t.Fatalf("a poll of another connection gave %d records", len(r.Records))
	}
}

// A poll that comes while the node stops is refused, so that its client goes
// elsewhere instead of polling again and again.
func TestPollOfAStoppingNode(t *testing.T) {
	files := fstest.NewFaults(fs.OS())
	n := startGroups(t, felixtest.WithFileSystem(files), felixtest.WithSetting("storage-journal-bytes", "0"))
	p := dial(t, n)
	p.produce(letters(1)...)
	l := p.login(modern(), n.Token())
	l.polled(p.poll(1, 1, 0), "0:a:1")
	gate := files.Block(fstest.OpSync, "_s_")
	t.Cleanup(gate.Open)
	publisher := p.login(modern(), n.Token())
	publisher.send(p.publish(1, "s", []byte("holds up the stop")).Append(nil))
	<-gate.Arrived()
	l.say(p.poll(2, 1, long))
	waitingPolls(t, n, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	if got := l.records(2); len(got) != 0 {
		t.Fatalf("the waiting poll gave %v", got)
	}
	l.say(p.poll(3, 1, long))
	expectError(t, l.message(), "draining", "retry")
	gate.Open()
	if a := publisher.ack(); a.Failed {
		t.Fatalf("publish: %+v", a)
	}
	<-stopped
}
