// Package demo plays a week of earthquakes through one log, kills the broker in
// the middle of it, and checks what each way of reading the log saw: a stream,
// which must show every record in order, a cache, which must hold the latest of
// every network, and the log itself, read again from its beginning.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/felixlog/felix/client"
)

// The names of the demo's stream and cache.
const (
	StreamName = "quakes"
	CacheName  = "latest-quake"
)

// patience is how long a reader may see nothing new, once everything was
// published, before the rest counts as missing.
const patience = 8 * time.Second

// getRounds is how often the cache is read back, to tell how fast it answers.
const getRounds = 50

// keepAlive and idle let a client that only listens notice the kill soon: it
// hears nothing from a broker that is gone.
const (
	keepAlive = 250 * time.Millisecond
	idle      = 1500 * time.Millisecond
)

// putAgain is how long the cache's writer waits before it tries again.
const putAgain = 10 * time.Millisecond

// A Broker is what the demo runs against.
type Broker interface {
	// Dial opens a client.
	Dial(ctx context.Context, options ...client.Option) (*client.Client, error)
	// Kill ends the broker as kill -9 does.
	Kill() error
	// Start starts it again, on what it left behind, at the same address.
	Start(ctx context.Context) error
}

// A Quake is what the demo shows of one record.
type Quake struct {
	Net   string  `json:"net"`
	Mag   float64 `json:"mag"`
	Place string  `json:"place"`
}

// A Demo is one run. Its methods may be called while it runs.
type Demo struct {
	records [][]byte
	speed   float64

	mu        sync.Mutex
	published int
	received  int
	inOrder   bool
	cached    int
	last      Quake
	latest    map[string]Quake
	kill      Kill
	changed   chan struct{} // closed and replaced when something arrives
	err       error
}

// New prepares a demo of records, published speed a second, or as fast as
// they are acknowledged when speed is 0.
func New(records [][]byte, speed float64) *Demo {
	return &Demo{
		records: records, speed: speed, inOrder: true,
		latest: make(map[string]Quake), changed: make(chan struct{}),
	}
}

// A Snapshot is how far a demo is.
type Snapshot struct {
	Total     int
	Published int // acknowledged
	Received  int // by the stream reading
	InOrder   bool
	Cached    int   // writes to the cache
	Last      Quake // the last received
	// Latest is the cache as its writer left it, by network.
	Latest map[string]Quake
	Kill   Kill
}

// Snapshot tells how far the demo is.
func (d *Demo) Snapshot() Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Snapshot{
		Total: len(d.records), Published: d.published, Received: d.received, InOrder: d.inOrder,
		Cached: d.cached, Last: d.last, Latest: maps.Clone(d.latest), Kill: d.kill,
	}
}

// update changes the state and wakes who waits for it.
func (d *Demo) update(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Run plays the demo to its end and reports what the readings saw. An error
// is a failure to play it; a wrong count is not an error but shows in
// [Report.OK].
func (d *Demo) Run(ctx context.Context, broker Broker) (*Report, error) {
	started := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients := make([]*client.Client, 3)
	for i := range clients {
		c, err := broker.Dial(ctx, client.WithKeepAlive(keepAlive, idle))
		if err != nil {
			return nil, err
		}
		defer c.Close()
		clients[i] = c
	}
	timing := newTiming(len(d.records))
	// Both readings begin at the start of the log, before anything is in it.
	var subscriptions [2]*client.Subscription
	for i := range subscriptions {
		s, err := clients[1+i].Subscribe(ctx, StreamName, client.From(client.Earliest()))
		if err != nil {
			return nil, fmt.Errorf("subscribe to %s: %w", StreamName, err)
		}
		defer s.Close()
		subscriptions[i] = s
	}
	cache := clients[2].Cache(CacheName)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // before the wait
	start := func(name string, work func() error) {
		group.Go(func() {
			if err := work(); err != nil && ctx.Err() == nil {
				d.update(func() { d.err = errors.Join(d.err, fmt.Errorf("%s: %w", name, err)) })
			}
		})
	}
	start("stream reading", func() error { return d.readStream(ctx, subscriptions[0], timing) })
	start("cache reading", func() error { return d.fillCache(ctx, subscriptions[1], cache, timing) })
	start("kill", func() error { return d.killInTheMiddle(ctx, broker) })
	if err := d.publish(ctx, clients[0], timing); err != nil {
		return nil, errors.Join(err, d.failure())
	}
	if err := d.settle(ctx); err != nil {
		return nil, err
	}
	held, gets, err := d.readBack(ctx, cache)
	if err != nil {
		return nil, err
	}
	again, err := d.replay(ctx, clients[1])
	if err != nil {
		return nil, err
	}
	return d.report(held, again, gets, timing, time.Since(started)), nil
}

// publish sends every record, keyed by its network, each to be stored exactly
// once: a record whose answer the kill took away is sent again under its number.
func (d *Demo) publish(ctx context.Context, c *client.Client, timing *timing) error {
	publisher, err := c.NewProducer(ctx, StreamName)
	if err != nil {
		return fmt.Errorf("begin to publish: %w", err)
	}
	started := time.Now()
	for i, record := range d.records {
		if d.speed > 0 {
			due := started.Add(time.Duration(float64(i) / d.speed * float64(time.Second)))
			if err := sleepUntil(ctx, due); err != nil {
				return err
			}
		}
		if i == d.lastBeforeKill() {
			if err := d.awaitKill(ctx); err != nil {
				return err
			}
		}
		quake, err := parse(record)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		d.update(func() { timing.sent[i] = time.Now() })
		err = publisher.SendKeyedFunc(ctx, []byte(quake.Net), func(_ client.Ack, err error) {
			now := time.Now()
			d.update(func() {
				if err != nil {
					d.err = errors.Join(d.err, fmt.Errorf("publish record %d: %w", i, err))
					return
				}
				d.published++
				timing.lastAck = now
				d.kill.answered(now)
			})
		}, record)
		if err != nil {
			return fmt.Errorf("publish record %d: %w", i, err)
		}
		if err := d.failure(); err != nil {
			return err
		}
	}
	return publisher.Flush(ctx)
}

// sleepUntil waits for a moment, or for the end of ctx.
func sleepUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// parse reads what the demo shows of a record.
func parse(record []byte) (Quake, error) {
	var quake Quake
	if err := json.Unmarshal(record, &quake); err != nil {
		return Quake{}, err
	}
	if quake.Net == "" {
		return Quake{}, errors.New("it names no network")
	}
	return quake, nil
}

// readStream checks each record against the one published in its place.
func (d *Demo) readStream(ctx context.Context, s *client.Subscription, timing *timing) error {
	for at := 0; at < len(d.records); {
		event, err := s.Next(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		quake, err := parse(event.Payload)
		if err != nil {
			return err
		}
		d.update(func() {
			d.received++
			d.last = quake
			d.inOrder = d.inOrder && event.Gap == 0 && bytes.Equal(event.Payload, d.records[at])
			timing.delivered = append(timing.delivered, now.Sub(timing.sent[at]))
			timing.lastArrival = now
		})
		at++
	}
	return nil
}

// fillCache writes each record under its network.
func (d *Demo) fillCache(ctx context.Context, s *client.Subscription, cache *client.Cache, timing *timing) error {
	for range d.records {
		event, err := s.Next(ctx)
		if err != nil {
			return err
		}
		quake, err := parse(event.Payload)
		if err != nil {
			return err
		}
		sent := time.Now()
		if err := put(ctx, cache, quake.Net, event.Payload); err != nil {
			return err
		}
		took := time.Since(sent)
		d.update(func() {
			d.cached++
			d.latest[quake.Net] = quake
			timing.puts = append(timing.puts, took)
		})
	}
	return nil
}

// put writes an entry, again where the kill left the outcome open: the same
// value twice is the same entry.
func put(ctx context.Context, cache *client.Cache, key string, value []byte) error {
	for {
		err := cache.Put(ctx, key, value)
		if err == nil || ctx.Err() != nil || !client.IsRetryable(err) && !client.IsOutcomeUnknown(err) {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(putAgain)); err != nil {
			return err
		}
	}
}

// settle waits until both readings have seen everything, or see nothing more.
func (d *Demo) settle(ctx context.Context) error {
	for {
		d.mu.Lock()
		changed, err := d.changed, d.err
		done := d.received >= len(d.records) && d.cached >= len(d.records)
		d.mu.Unlock()
		if err != nil || done {
			return err
		}
		timer := time.NewTimer(patience)
		select {
		case <-changed:
			timer.Stop()
		case <-timer.C:
			return nil // the report tells what is missing
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// readBack reads every network's entry from the cache, several times, and
// returns what was held and how long each get took.
func (d *Demo) readBack(ctx context.Context, cache *client.Cache) (held map[string][]byte, gets []time.Duration, err error) {
	networks := slices.Sorted(maps.Keys(d.expected()))
	held = make(map[string][]byte)
	for range getRounds {
		for _, network := range networks {
			sent := time.Now()
			value, found, err := cache.Get(ctx, network)
			if err != nil {
				return nil, nil, fmt.Errorf("read %s from the cache: %w", network, err)
			}
			gets = append(gets, time.Since(sent))
			if found {
				held[network] = value
			}
		}
	}
	return held, gets, nil
}

// expected is the last record of every network.
func (d *Demo) expected() map[string][]byte {
	last := make(map[string][]byte)
	for _, record := range d.records {
		if quake, err := parse(record); err == nil {
			last[quake.Net] = record
		}
	}
	return last
}

func (d *Demo) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
