package udp

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

func TestPollCounts(t *testing.T) {
	c := open(t, "127.0.0.1:0", Options{Poll: MaxPoll})
	// As on a host with a second CPU, in the middle of a conversation.
	c.rx.poll = newPoller(MaxPoll, 2)
	c.rx.poll.close = true
	c.SetReadDeadline(time.Now().Add(4 * MaxPoll))
	if _, err := c.ReadBatch(newMessages(1, 100), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if n := c.Counters(); n.PollMisses != 1 || n.PollHits != 0 {
		t.Errorf("counters %+v, want one miss and then to park", n)
	}

	// Packets that keep coming are found by a poll before long.
	c.SetReadDeadline(time.Now().Add(patience))
	s := newSender(t, c)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.WriteToUDP([]byte("x"), s.to)
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	ms := newMessages(8, 100)
	for c.Counters().PollHits == 0 {
		if _, err := c.ReadBatch(ms, 0); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	sending.Wait()

	// A budget that is used up means no poll.
	c.rx.budget = NewPollBudget(0)
	before := c.Counters()
	for range 10 {
		c.rx.poll.close = true
		s.send(t, []byte("x"))
		if _, err := c.ReadBatch(ms, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Counters(); n.PollHits != before.PollHits || n.PollMisses != before.PollMisses {
		t.Errorf("polls beyond the budget: %+v, then %+v", before, n)
	}
	if _, err := Listen("127.0.0.1:0", Options{Poll: MaxPoll + 1}); err == nil {
		t.Error("a poll that long is accepted")
	}
}
