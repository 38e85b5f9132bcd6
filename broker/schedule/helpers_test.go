package schedule

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// funcTask is a task made of functions.
type funcTask struct {
	run  func() Verdict
	fail func(error)
}

func (f *funcTask) Run() Verdict {
	if f.run == nil {
		return Done
	}
	return f.run()
}

func (f *funcTask) Fail(err error) {
	if f.fail != nil {
		f.fail(err)
	}
}

func jobOf(cost int64, run func() Verdict) *Job {
	return &Job{Task: &funcTask{run: run}, Cost: cost}
}

// submit enters l, waiting if need be, and runs or queues j.
func submit(t testing.TB, s *Scheduler, l *Lane, j *Job) Pass {
	t.Helper()
	pass, err := s.Enter(t.Context(), l)
	if err != nil {
		t.Errorf("enter: %v", err)
		return noPass
	}
	s.Submit(l, pass, j)
	return pass
}

// hold makes l busy with a job that waits, and returns what ends the wait.
func hold(t testing.TB, s *Scheduler, l *Lane) (release func()) {
	t.Helper()
	var step int
	j := jobOf(1, func() Verdict {
		step++
		if step == 1 {
			return Held
		}
		return Done
	})
	if pass := submit(t, s, l, j); pass != Inline {
		t.Fatalf("lane was not free: pass %d", pass)
	}
	return sync.OnceFunc(func() { l.Continue(j) })
}

// queue puts a job behind what is in l, which is busy.
func queue(t testing.TB, s *Scheduler, l *Lane, cost int64, run func()) {
	t.Helper()
	j := jobOf(cost, func() Verdict { run(); return Done })
	pass, err := s.TryEnter(l)
	if err != nil || pass != Slot {
		t.Fatalf("queue: pass %d, %v", pass, err)
	}
	s.Submit(l, pass, j)
}

// eventually polls a condition that other goroutines bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// step takes the next job as an executor would, without running it, and frees
// its lane.
func (s *Scheduler) step() *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, j := s.next()
	if l != nil {
		s.release(l)
	}
	return j
}
