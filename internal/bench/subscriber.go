package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/client"
)

// settle is how long nothing may arrive before what is missing counts as
// lost.
const settle = time.Second

// A subscriber reads the messages of one run from one subscription and counts
// them. Messages below first are the warm-up's.
type subscriber struct {
	run      uint64
	first    uint64
	clock    stopwatch
	arrivals *latest
	times    *recorder
	notify   chan<- struct{} // told of every batch, without waiting

	warm     atomic.Uint64 // warm-up messages seen
	seen     atomic.Uint64 // measured messages seen
	bytes    atomic.Uint64
	disorder atomic.Uint64 // messages that came after a later one
	reached  atomic.Uint64 // one past the highest sequence seen
}

// read counts until ctx ends. The end of ctx is no error.
func (s *subscriber) read(ctx context.Context, subscription *client.Subscription) error {
	for {
		batch, err := subscription.NextBatch(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.count(batch)
		select {
		case s.notify <- struct{}{}:
		default:
		}
	}
}

func (s *subscriber) count(batch *client.Batch) {
	now := s.clock.now()
	var warm, seen, bytes, disorder uint64
	next := s.reached.Load()
	s.times.mu.Lock()
	for event := range batch.Events() {
		m, ok := readMessage(event.Payload, s.run)
		if !ok {
			continue
		}
		if m.sequence < next {
			disorder++
		}
		next = max(next, m.sequence+1)
		if m.sequence < s.first {
			warm++
			continue
		}
		seen++
		bytes += uint64(len(event.Payload))
		s.times.recordLocked(now - m.sent)
	}
	s.times.mu.Unlock()
	if seen > 0 {
		s.arrivals.tell(now)
	}
	s.bytes.Add(bytes)
	s.disorder.Add(disorder)
	s.warm.Add(warm)
	s.reached.Store(next)
	s.seen.Add(seen)
}

// A crowd is the subscribers of a run and what they read from.
type crowd struct {
	members []*subscriber
	arrived chan struct{}
	arrival latest

	cancel context.CancelFunc
	group  sync.WaitGroup
	close  []func()
	failed chan error
}

// gather subscribes n times to the stream, spread over clients, each reading
// in a goroutine of its own, from now on.
func gather(ctx context.Context, clients []*client.Client, stream string, n int, run, first uint64, clock stopwatch) (*crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{arrived: make(chan struct{}, 1), cancel: cancel, failed: make(chan error, n)}
	for i := range n {
		subscription, err := clients[i%len(clients)].Subscribe(ctx, stream, client.From(client.Latest()))
		if err != nil {
			c.disperse()
			return nil, err
		}
		c.close = append(c.close, func() { subscription.Close() })
		member := &subscriber{
			run: run, first: first, clock: clock,
			arrivals: &c.arrival, times: newRecorder(), notify: c.arrived,
		}
		c.members = append(c.members, member)
		c.group.Go(func() {
			if err := member.read(ctx, subscription); err != nil {
				c.failed <- err
			}
		})
	}
	return c, nil
}

// disperse ends all subscriptions and waits for their readers. Doing so again
// does nothing.
func (c *crowd) disperse() {
	c.cancel()
	c.group.Wait()
	for _, closeOne := range c.close {
		closeOne()
	}
	c.close = nil
}

// least is the smallest of a figure over the members.
func (c *crowd) least(of func(*subscriber) uint64) uint64 {
	smallest := of(c.members[0])
	for _, member := range c.members[1:] {
		smallest = min(smallest, of(member))
	}
	return smallest
}

// sum adds up a figure over the members.
func (c *crowd) sum(of func(*subscriber) uint64) uint64 {
	var total uint64
	for _, member := range c.members {
		total += of(member)
	}
	return total
}

// wait waits until enough is true, and gives up when nothing arrived for
// [settle] (then the rest is lost) or ctx ends.
func (c *crowd) wait(ctx context.Context, enough func() bool) error {
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	for !enough() {
		select {
		case <-c.arrived:
			quiet.Reset(settle)
		case <-quiet.C:
			return nil
		case err := <-c.failed:
			return errors.Join(errors.New("a subscriber failed"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
