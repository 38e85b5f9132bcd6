package measure

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A wire is a network of receivers of known speed in simulated time.
type wire struct {
	tally  Tally
	queues []chan uint64
	done   sync.WaitGroup
}

func newWire(receivers int, perBatch time.Duration) *wire {
	w := &wire{tally: NewTally(receivers)}
	for i := range receivers {
		q := make(chan uint64, 1<<12)
		w.queues = append(w.queues, q)
		w.done.Go(func() {
			for n := range q {
				time.Sleep(perBatch)
				w.tally.Add(i, n)
			}
		})
	}
	return w
}

func (w *wire) publish(batch uint64) {
	for _, q := range w.queues {
		q <- batch
	}
}

func (w *wire) close() {
	for _, q := range w.queues {
		close(q)
	}
	w.done.Wait()
}

func TestFanoutCountsEveryDeliveryUpToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(3, 10*time.Millisecond)
		defer w.close()
		f := Fanout{Received: w.tally, Batch: 8, RecordBytes: 100, MaxLag: 80}
		// The publisher is ten times as fast as the receivers, so the lag
		// bound sets the pace: 100 batches a second at each of three.
		r, err := f.Run(t.Context(), Phases{Warmup: time.Second, Measure: 10 * time.Second}, func(context.Context) error {
			time.Sleep(time.Millisecond)
			w.publish(8)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Lost != 0 || r.Repeated != 0 {
			t.Errorf("lost %d, repeated %d", r.Lost, r.Repeated)
		}
		rate := RecordsPerSec.Of(r)
		if rate < 2300 || rate > 2401 {
			t.Errorf("rate %v, want 2400 deliveries a second, the receivers' own speed", rate)
		}
		if r.Elapsed < 10*time.Second+80*time.Millisecond {
			t.Errorf("elapsed %v leaves out the drain of what was in flight", r.Elapsed)
		}
		if r.Window != 80*100*3 {
			t.Errorf("window %d bytes, want the lag at three receivers", r.Window)
		}
		if why := r.Invalid(); why != "" {
			t.Errorf("a good run is called invalid: %s", why)
		}
	})
}

func TestFanoutReportsLoss(t *testing.T) {
	for name, measure := range map[string]time.Duration{
		"seen at the end":                    50 * time.Millisecond,
		"seen when the lag stops the sender": 10 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(2, time.Millisecond)
				defer w.close()
				n := 0
				f := Fanout{Received: w.tally, Batch: 1, RecordBytes: 1, MaxLag: 100}
				r, err := f.Run(t.Context(), Phases{Measure: measure}, func(context.Context) error {
					time.Sleep(2 * time.Millisecond)
					if n++; n%10 == 0 {
						w.queues[0] <- 1 // the second receiver misses one in ten
						return nil
					}
					w.publish(1)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Lost == 0 || r.Invalid() == "" {
					t.Errorf("lost %d, invalid %q: a run with drops passes as a figure", r.Lost, r.Invalid())
				}
			})
		})
	}
}

func TestFanoutReportsRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(1, time.Millisecond)
		defer w.close()
		f := Fanout{Received: w.tally, Batch: 1, RecordBytes: 1, MaxLag: 10}
		r, err := f.Run(t.Context(), Phases{Measure: time.Second}, func(context.Context) error {
			time.Sleep(5 * time.Millisecond)
			w.publish(2)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Repeated == 0 || r.Invalid() == "" {
			t.Errorf("repeated %d, invalid %q", r.Repeated, r.Invalid())
		}
	})
}

func TestFanoutEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := Fanout{Received: NewTally(1), Batch: 1, RecordBytes: 1, MaxLag: 0}
		_, err := f.Run(ctx, Phases{Measure: time.Hour}, func(context.Context) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the deadline", err)
		}
	})
}
