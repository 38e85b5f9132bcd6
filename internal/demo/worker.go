package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

const (
	// visibility is how soon the claims of a dead worker come back.
	visibility = time.Second
	// retryAfter is how long the poison is kept back after each failure.
	retryAfter = 400 * time.Millisecond
	// workTime is what a worker needs for a strong quake.
	workTime = 2 * time.Millisecond
	// drainTime bounds the end of a worker that is told to end.
	drainTime = 5 * time.Second
)

// orders are what a worker is told when it begins.
type orders struct {
	Broker dev.Access `json:"broker"`
	Name   string     `json:"name"`
	// Handlers is how many records it works on at once.
	Handlers int `json:"handlers"`
	// Hold lets it sit on the first strong quake it gets.
	Hold bool `json:"hold"`
	// Poison is the offset of the record it fails on, until it is told Mend.
	Poison uint64 `json:"poison"`
	Mend   bool   `json:"mend,omitempty"`
}

// A deed is one thing a worker says of itself.
type deed struct {
	Did      string `json:"did"`
	Offset   uint64 `json:"offset"`
	Attempts uint32 `json:"attempts"`
}

// What workers do.
const (
	didReady = "ready" // it is connected
	didPass  = "pass"  // it claimed a weak quake and is done with it
	didBegin = "begin" // it claimed a strong quake
	didHold  = "hold"  // and will not let it go
	didWork  = "work"  // it is done with a strong quake
	didFail  = "fail"  // it is not, and hands it back
	didMend  = "mend"  // it will not fail any more
)

// Work is the life of a worker, a process of its own: it is told on in what to
// do, as the [Demo] that started it does, and tells on out what it did. It
// ends when in does.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := json.NewDecoder(in)
	w := &worker{out: json.NewEncoder(out), ended: ctx.Done()}
	if err := told.Decode(&w.orders); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	c, err := w.orders.Broker.Dial(ctx, client.WithKeepAlive(keepAlive, idle))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := w.say(deed{Did: didReady}); err != nil {
		return err
	}
	go func() {
		defer cancel()
		var next orders
		for told.Decode(&next) == nil {
			if next.Mend {
				w.mended.Store(true)
				_ = w.say(deed{Did: didMend}) // who does not listen will end this process
			}
		}
	}()
	err = c.Consume(ctx, c.Group(StreamName, GroupName), w.handle,
		client.ConsumeAs(w.orders.Name), client.ConsumeShard(0), client.ConsumeConcurrency(w.orders.Handlers),
		client.ConsumeVisibility(visibility), client.ConsumeDrain(drainTime))
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	return err
}

// A worker is what handles the records.
type worker struct {
	orders orders
	ended  <-chan struct{}
	held   atomic.Bool
	mended atomic.Bool

	mu  sync.Mutex
	out *json.Encoder
}

// say tells the demo something, in one write.
func (w *worker) say(d deed) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(d)
}

// errPoison is what the worker makes of the poison.
var errPoison = errors.New("the workers do not know what to do about this quake")

// handle does the work on one record: its claim is finished when it returns
// without an error.
func (w *worker) handle(ctx context.Context, d client.Delivery) error {
	quake, err := parse(d.Payload)
	if err != nil {
		return client.DeadLetter(err)
	}
	if quake.Mag < Strong {
		return w.say(deed{Did: didPass, Offset: d.Offset, Attempts: d.Attempts})
	}
	if w.orders.Hold && w.held.CompareAndSwap(false, true) {
		if err := w.say(deed{Did: didHold, Offset: d.Offset, Attempts: d.Attempts}); err != nil {
			return err
		}
		<-w.ended // it is killed before
		return context.Canceled
	}
	if err := w.say(deed{Did: didBegin, Offset: d.Offset, Attempts: d.Attempts}); err != nil {
		return err
	}
	if d.Offset == w.orders.Poison && !w.mended.Load() {
		if err := w.say(deed{Did: didFail, Offset: d.Offset, Attempts: d.Attempts}); err != nil {
			return err
		}
		return client.RetryAfter(retryAfter, errPoison)
	}
	if err := sleepUntil(ctx, time.Now().Add(workTime)); err != nil {
		return err
	}
	return w.say(deed{Did: didWork, Offset: d.Offset, Attempts: d.Attempts})
}
