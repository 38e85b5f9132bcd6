// Package demo plays a week of earthquakes through one log, kills the broker
// and one of its readers in the middle of it, and checks what each way of
// reading the log saw: a stream, which must show every record in order, a
// cache, which must hold the latest of every network, a queue, whose workers
// must finish every record and do something about the strong quakes, and the
// log itself, read again from its beginning.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"sync"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

// The names of the demo's stream, cache and group.
const (
	StreamName = "quakes"
	CacheName  = "latest-quake"
	GroupName  = "responders"
)

// Strong is the magnitude from which on a quake is work for the group.
const Strong = 5.0

// keepAlive and idle let a client that only listens notice the kill soon: it
// hears nothing from a broker that is gone.
const (
	keepAlive = 250 * time.Millisecond
	idle      = 1500 * time.Millisecond
)

// A Broker is what the demo runs against.
type Broker interface {
	// Dial opens a client.
	Dial(ctx context.Context, options ...client.Option) (*client.Client, error)
	// Access is how the workers, processes of their own, open theirs.
	Access() dev.Access
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
	worker  func() *exec.Cmd

	mu        sync.Mutex
	published int
	received  int
	inOrder   bool
	cached    int
	last      Quake
	latest    map[string]Quake
	queue     queue
	kill      Kill
	changed   chan struct{} // closed and replaced when something arrives
	moved     time.Time     // when that was
	err       error
}

// New prepares a demo of records, published speed a second, or as fast as
// they are acknowledged when speed is 0. worker makes the command of a process
// that calls [Work] with its standard input and output.
func New(records [][]byte, speed float64, worker func() *exec.Cmd) *Demo {
	return &Demo{
		records: records, speed: speed, worker: worker, inOrder: true,
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
	Queue  Queue
	Kill   Kill
}

// Snapshot tells how far the demo is.
func (d *Demo) Snapshot() Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Snapshot{
		Total: len(d.records), Published: d.published, Received: d.received, InOrder: d.inOrder,
		Cached: d.cached, Last: d.last, Latest: maps.Clone(d.latest), Queue: d.queue.Queue, Kill: d.kill,
	}
}

// Run plays the demo to its end and reports what the readings saw. An error
// is a failure to play it; a wrong count is not an error but shows in
// [Report.OK].
func (d *Demo) Run(ctx context.Context, broker Broker) (*Report, error) {
	started := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.prepare(); err != nil {
		return nil, err
	}
	clients := make([]*client.Client, 4)
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
				d.fail(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start("stream reading", func() error { return d.readStream(ctx, subscriptions[0], timing) })
	start("cache reading", func() error { return d.fillCache(ctx, subscriptions[1], cache, timing) })
	start("queue reading", func() error { return d.runQueue(ctx, clients[3], broker, timing) })
	start("kill", func() error { return d.killInTheMiddle(ctx, broker) })
	if err := d.publish(ctx, clients[0], timing); err != nil {
		d.fail(err)
		return nil, d.failure()
	}
	// What is missing after this, the report tells.
	if _, err := d.await(ctx, func() bool {
		return d.received >= len(d.records) && d.cached >= len(d.records) && d.queue.over
	}); err != nil {
		d.fail(err)
		return nil, d.failure()
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

// prepare finds out what the records ask of the workers.
func (d *Demo) prepare() error {
	quakes := make([]Quake, len(d.records))
	for i, record := range d.records {
		quake, err := parse(record)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		quakes[i] = quake
	}
	queue, err := newQueue(quakes)
	if err != nil {
		return err
	}
	d.update(func() { d.queue = queue })
	return nil
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
