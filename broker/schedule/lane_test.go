package schedule

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// Many producers on few lanes, some jobs inline, some queued, some held and
// continued elsewhere: a lane runs one job at a time and each producer's in
// its order.
func TestLaneRunsInOrderOneAtATime(t *testing.T) {
	const lanes, producers, each = 3, 4, 400
	s := New(Config{Executors: 3, Share: 8})
	var work sync.WaitGroup
	var continuations sync.WaitGroup
	var releases []func()
	for range lanes {
		l := s.NewTenant().NewLane()
		releases = append(releases, hold(t, s, l)) // so that the first ones queue
		var running atomic.Int32
		last := make([]int, producers)
		for p := range producers {
			work.Add(1)
			go func() {
				defer work.Done()
				for i := 1; i <= each; i++ {
					if i%64 == 0 { // let the lane run dry, so that inline happens too
						eventually(t, "lane idle", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !l.held && l.head == nil })
					}
					var second bool
					j := &Job{Cost: int64(i)}
					j.Task = &funcTask{run: func() Verdict {
						if second {
							running.Add(-1)
							return Done
						}
						if n := running.Add(1); n != 1 {
							t.Errorf("%d jobs at once on a lane", n)
						}
						if last[p] != i-1 {
							t.Errorf("producer %d: job %d after %d", p, i, last[p])
						}
						last[p] = i
						if i%7 == 0 {
							second = true
							continuations.Add(1)
							go func() { defer continuations.Done(); l.Continue(j) }()
							return Held
						}
						running.Add(-1)
						return Done
					}}
					submit(t, s, l, j)
				}
			}()
		}
	}
	for _, release := range releases {
		eventually(t, "jobs queue", func() bool { return s.Stats().Queued > 0 })
		release()
	}
	work.Wait()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	continuations.Wait()
	s.Close() // executors have counted their last job
	st := s.Stats()
	if st.Inline+st.Executed != lanes*(1+producers*each) || st.Queued != 0 || st.Busy != 0 {
		t.Fatalf("stats %+v, want %d jobs and nothing left", st, lanes*(1+producers*each))
	}
	if st.Inline == 0 || st.Executed == 0 {
		t.Errorf("both ways should have been taken: %+v", st)
	}
}

func TestFreeLaneRunsOnTheCallersGoroutine(t *testing.T) {
	s := newScheduler(Config{}) // no executor is running
	l := s.NewTenant().NewLane()
	ran := false
	if pass := submit(t, s, l, jobOf(1, func() Verdict { ran = true; return Done })); pass != Inline || !ran {
		t.Fatalf("pass %d, ran %v", pass, ran)
	}
	if st := s.Stats(); st.Busy != 0 || st.Queued != 0 || st.Inline != 1 {
		t.Fatalf("left behind: %+v", st)
	}
}

// A slot taken while the lane was busy is not needed when the lane is free by
// the time of the submit.
func TestSlotOfALaneThatBecameFreeRunsInline(t *testing.T) {
	s := newScheduler(Config{})
	l := s.NewTenant().NewLane()
	release := hold(t, s, l)
	pass, err := s.TryEnter(l)
	if err != nil || pass != Slot {
		t.Fatal(pass, err)
	}
	release()
	ran := false
	s.Submit(l, pass, jobOf(1, func() Verdict { ran = true; return Done }))
	if st := s.Stats(); !ran || st.Queued != 0 || st.Busy != 0 {
		t.Fatalf("ran %v, %+v", ran, st)
	}
}

// One executor, one lane that waits: the other lanes go on.
func TestHeldLaneHoldsNoExecutor(t *testing.T) {
	s := New(Config{Executors: 1})
	defer s.Close()
	a, b := s.NewTenant().NewLane(), s.NewTenant().NewLane()

	// Make a's waiting job come from the queue, so that it ran on the executor.
	releaseA := hold(t, s, a)
	var waits *Job
	step := 0
	waits = jobOf(1, func() Verdict {
		if step++; step == 1 {
			return Held
		}
		return Done
	})
	submit(t, s, a, waits)
	var behind atomic.Bool
	queue(t, s, a, 1, func() { behind.Store(true) })
	releaseA()
	eventually(t, "the waiting job ran", func() bool { return s.Stats().Executed == 1 })

	releaseB := hold(t, s, b)
	var other atomic.Int32
	for range 20 {
		queue(t, s, b, 1, func() { other.Add(1) })
	}
	releaseB()
	eventually(t, "the other lane's jobs ran", func() bool { return other.Load() == 20 })
	if behind.Load() {
		t.Fatal("a job overtook the one that holds its lane")
	}
	a.Continue(waits)
	eventually(t, "the lane went on", func() bool { return behind.Load() })
}

func TestContinueBeforeRunReturns(t *testing.T) {
	s := newScheduler(Config{})
	l := s.NewTenant().NewLane()
	step := 0
	var j *Job
	j = jobOf(1, func() Verdict {
		if step++; step == 2 {
			return Done
		}
		l.Continue(j)
		return Held
	})
	submit(t, s, l, j)
	if st := s.Stats(); st.Busy != 0 || step != 2 {
		t.Fatalf("steps %d, %+v", step, st)
	}
}

func TestContinueTwicePanics(t *testing.T) {
	s := newScheduler(Config{})
	l := s.NewTenant().NewLane()
	hold(t, s, l)()
	defer func() {
		if recover() == nil {
			t.Fatal("a lane was freed twice without a panic")
		}
		s.mu.Unlock() // the panic is in the scheduler itself
	}()
	l.Continue(jobOf(1, nil))
}

func TestPanicFreesTheLaneAndIsReported(t *testing.T) {
	for name, inline := range map[string]bool{"inline": true, "executor": false} {
		t.Run(name, func(t *testing.T) {
			var heard atomic.Int32
			s := New(Config{Executors: 1, OnPanic: func(v any, stack []byte) {
				if v == "boom" && len(stack) > 0 {
					heard.Add(1)
				}
			}})
			defer s.Close()
			l := s.NewTenant().NewLane()
			release := func() {}
			if !inline {
				release = hold(t, s, l)
			}
			failed := make(chan error, 2)
			boom := &Job{Task: &funcTask{
				run:  func() Verdict { panic("boom") },
				fail: func(err error) { failed <- err; panic("boom") }, // even that
			}}
			submit(t, s, l, boom)
			ran := make(chan struct{})
			if inline {
				if pass := submit(t, s, l, jobOf(1, func() Verdict { close(ran); return Done })); pass != Inline {
					t.Fatalf("the lane is not free after a panic: pass %d", pass)
				}
			} else {
				queue(t, s, l, 1, func() { close(ran) })
			}
			release()
			var panicked *PanicError
			if err := <-failed; !errors.As(err, &panicked) || panicked.Value != "boom" {
				t.Fatalf("reported %v", err)
			}
			<-ran
			eventually(t, "both panics counted", func() bool { return s.Stats().Panics == 2 && heard.Load() == 2 })
			if len(failed) != 0 {
				t.Fatal("reported twice")
			}
		})
	}
}

func TestDrainFinishesWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	s := New(Config{Executors: 1, Share: 2})
	l := s.NewTenant().NewLane()
	release := hold(t, s, l)
	var ran atomic.Int32
	queue(t, s, l, 1, func() { ran.Add(1) })
	queue(t, s, l, 1, func() { ran.Add(1) })
	waited := make(chan error)
	go func() {
		_, err := s.Enter(context.Background(), l)
		waited <- err
	}()
	eventually(t, "a publish waits", func() bool { return s.Stats().Waiting == 1 })

	short, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := s.Drain(short); err != over {
		t.Fatalf("drain with work left: %v", err)
	}
	if err := <-waited; err != ErrClosed {
		t.Fatalf("the waiting publish: %v", err)
	}
	if _, err := s.TryEnter(l); err != ErrClosed {
		t.Fatalf("a new publish: %v", err)
	}
	release()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != 2 {
		t.Fatalf("%d of 2 queued jobs ran", ran.Load())
	}
	s.Close()
	s.Close()
}
