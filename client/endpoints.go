package client

import (
	"sync"
	"time"
)

const (
	// maxEndpoints bounds the brokers a client remembers.
	maxEndpoints = 1024
	// avoidFor is how long an endpoint that failed is tried after the others.
	avoidFor = 10 * time.Second
)

// endpoints are the brokers a client knows: the seeds, which are never
// dropped, and behind them what discovery added (wire 15).
type endpoints struct {
	mu     sync.Mutex
	list   []*endpoint
	byAddr map[string]*endpoint
}

type endpoint struct {
	broker   *broker
	failedAt time.Time // zero when the last contact went well
}

// add gives the broker at addr, making it known if there is room.
func (e *endpoints) add(c *Client, addr string) *broker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.byAddr[addr]; known != nil {
		return known.broker
	}
	if len(e.list) >= maxEndpoints {
		return nil
	}
	ep := &endpoint{broker: newBroker(c, addr)}
	if e.byAddr == nil {
		e.byAddr = make(map[string]*endpoint)
	}
	e.byAddr[addr] = ep
	e.list = append(e.list, ep)
	return ep.broker
}

// all are the brokers, in order.
func (e *endpoints) all() []*broker {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*broker, len(e.list))
	for i, ep := range e.list {
		out[i] = ep.broker
	}
	return out
}

// candidates are the brokers in the order to try them: those that failed
// lately come last.
func (e *endpoints) candidates(now time.Time) []*broker {
	e.mu.Lock()
	defer e.mu.Unlock()
	var good, bad []*broker
	for _, ep := range e.list {
		if !ep.failedAt.IsZero() && now.Sub(ep.failedAt) < avoidFor {
			bad = append(bad, ep.broker)
		} else {
			good = append(good, ep.broker)
		}
	}
	return append(good, bad...)
}

// failed notes that b could not be reached, or was lost; ok clears that.
func (e *endpoints) failed(b *broker, now time.Time) { e.mark(b, now) }

func (e *endpoints) ok(b *broker) { e.mark(b, time.Time{}) }

func (e *endpoints) mark(b *broker, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ep := e.byAddr[b.addr]; ep != nil {
		ep.failedAt = at
	}
}
