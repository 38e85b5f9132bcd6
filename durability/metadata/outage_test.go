package metadata

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

// A shift is one of everything that clients do, at work on a broker: a
// publisher, a subscriber, a cache and a worker of a queue.
type shift struct {
	t    *testing.T
	c    *client.Client
	sub  *client.Subscription
	sent []string // acknowledged, in order
	done map[string]bool
}

func startShift(t *testing.T, b *brokerProcess) *shift {
	t.Helper()
	s := &shift{t: t, done: make(map[string]bool)}
	s.resume(b)
	return s
}

// resume connects anew.
func (s *shift) resume(b *brokerProcess) {
	s.t.Helper()
	s.c = b.dial(s.t)
	eventually(s.t, "subscribe", func() (err error) {
		ctx, cancel := bounded(s.t)
		defer cancel()
		s.sub, err = s.c.Subscribe(ctx, "orders", client.From(client.Latest()))
		return err
	})
	s.t.Cleanup(func() { _ = s.sub.Close() })
}

// work does everything once, and fails if any of it is refused.
func (s *shift) work() {
	s.t.Helper()
	ctx, cancel := bounded(s.t)
	defer cancel()
	text := fmt.Sprintf("order-%d", len(s.sent))
	_, err := s.c.Publish(ctx, "orders", []byte(text))
	must(s.t, err)
	s.sent = append(s.sent, text)
	for {
		e, err := s.sub.Next(ctx)
		must(s.t, err)
		if string(e.Payload) == text {
			break
		}
	}
	cache := s.c.Cache("latest")
	must(s.t, cache.Put(ctx, "order", []byte(text)))
	s.holds(text)
	group := s.c.Group("orders", "billing")
	for !s.done[text] {
		jobs, err := group.Poll(ctx)
		must(s.t, err)
		for _, job := range jobs {
			must(s.t, group.Ack(ctx, job.Claim))
			s.done[string(job.Payload)] = true
		}
	}
}

func (s *shift) holds(text string) {
	s.t.Helper()
	ctx, cancel := bounded(s.t)
	defer cancel()
	got, found, err := s.c.Cache("latest").Get(ctx, "order")
	if err != nil || !found || string(got) != text {
		s.t.Fatalf("the cache holds %q (%t), %v; want %q", got, found, err, text)
	}
}

// check reads everything back.
func (s *shift) check() {
	s.t.Helper()
	if got := records(s.t, s.c, "orders", 0); !slices.Equal(got, s.sent) {
		s.t.Fatalf("the stream has %d records, %d were acknowledged:\n%q\n%q", len(got), len(s.sent), got, s.sent)
	}
	if len(s.sent) > 0 {
		s.holds(s.sent[len(s.sent)-1])
	}
}

// TestEveryInstanceIsAway: with the whole control plane killed nothing stops on
// a broker, new clients come in with tokens that it can verify, and the broker
// itself can be killed and started again. When the control plane is back, what
// is new arrives.
func TestEveryInstanceIsAway(t *testing.T) {
	t.Parallel()
	p := raftPlane(t)
	p.createStream("orders", 1, true)
	p.createCache("latest", 1)
	b := p.broker("b1")
	b.start()
	publish(t, b.dial(t), "orders", "order-0")
	put(t, b.dial(t).Cache("latest"), "order", "order-0")
	s := startShift(t, b)
	s.sent = []string{"order-0"}
	s.work()
	b.remembers("orders")
	for _, i := range p.instances {
		i.kill()
	}
	for range 10 {
		s.work()
	}
	s.resume(b) // a client that was not there before
	s.work()

	b.kill()
	began := time.Now()
	b.start()
	t.Logf("without a control plane the broker was up after %v", time.Since(began).Round(time.Millisecond))
	b.saying("serving what this broker knew at its last run")
	s.resume(b)
	s.check()
	for range 10 {
		s.work()
	}
	b.terminate()
	b.start()
	s.resume(b)
	s.check()
	s.work()

	for n := range p.instances {
		p.instances[n].launch()
	}
	p.up()
	p.createStream("refunds", 1, true)
	if ack := publish(t, s.c, "refunds", "the first"); ack.Offset != 0 {
		t.Errorf("a new stream begins at %d", ack.Offset)
	}
	s.work()
	s.check()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n, err := p.client(p.operator).Node(ctx, "b1")
	if err != nil || !n.Node.Status.Lifecycle.Serving() {
		t.Errorf("the node is %+v, error %v", n, err)
	}
}
