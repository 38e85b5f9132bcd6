package schedule

import (
	"container/list"
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
)

// ErrFull refuses a job for which there is no slot.
var ErrFull = errors.New("publish queue full")

// ErrClosed refuses a job of a scheduler that drains or is closed.
var ErrClosed = errors.New("publish queue closed")

// Defaults of a [Config].
const (
	DefaultExecutors = 4
	DefaultShare     = 512
	DefaultQuantum   = 64 << 10
)

// Config sizes a scheduler. A number of zero or less means its default.
type Config struct {
	// Executors is how many queued jobs run at once. More than there are busy
	// lanes only adds contention.
	Executors int
	// Share is the number of slots guaranteed to every tenant. The queue has
	// Share x Executors.
	Share int
	// Quantum is what a tenant may take per turn, in bytes.
	Quantum int64
	// OnPanic hears of a panic of a task; nil ignores it.
	OnPanic func(value any, stack []byte)
}

// A Scheduler runs jobs. All methods are safe for concurrent use.
type Scheduler struct {
	cfg      Config
	capacity int

	mu   sync.Mutex
	work sync.Cond // a lane became ready, or stopped
	ring tenantRing
	// queued counts slots taken, held the lanes held, waiting the publishes
	// that wait for a slot, idle the executors that wait for work.
	queued, held, waiting, idle int
	// underShare and overShare are the tenants with waiters, by whether they
	// hold fewer slots than their share.
	underShare, overShare list.List
	closing, stopped      bool
	drained               chan struct{} // closed once closing and nothing is left
	inline, ran, panics   uint64

	executors sync.WaitGroup
}

// New returns a running scheduler. Close ends it.
func New(cfg Config) *Scheduler {
	s := newScheduler(cfg)
	s.start()
	return s
}

func newScheduler(cfg Config) *Scheduler {
	if cfg.Executors <= 0 {
		cfg.Executors = DefaultExecutors
	}
	if cfg.Share <= 0 {
		cfg.Share = DefaultShare
	}
	if cfg.Quantum <= 0 {
		cfg.Quantum = DefaultQuantum
	}
	s := &Scheduler{cfg: cfg, capacity: cfg.Share * cfg.Executors, drained: make(chan struct{})}
	s.work.L = &s.mu
	return s
}

func (s *Scheduler) start() {
	s.executors.Add(s.cfg.Executors)
	for range s.cfg.Executors {
		go s.execute()
	}
}

// Submit uses a pass to l. With [Inline] the job has run, or holds the lane,
// when Submit returns.
func (s *Scheduler) Submit(l *Lane, pass Pass, j *Job) {
	if pass == Slot {
		s.mu.Lock()
		if l.held || l.head != nil {
			l.push(j)
			s.mu.Unlock()
			return
		}
		// The lane became free meanwhile: no need for the slot.
		l.held = true
		s.held++
		s.freeSlot(l.tenant)
		s.mu.Unlock()
	}
	verdict := s.run(j)
	s.mu.Lock()
	s.inline++
	if verdict != Held {
		s.release(l)
	}
	s.mu.Unlock()
	if verdict == DoneYield {
		runtime.Gosched()
	}
}

// release frees l; mu is held.
func (s *Scheduler) release(l *Lane) {
	if !l.held {
		panic("lane released twice")
	}
	if l.head == nil && s.handOver(l) {
		return
	}
	l.held = false
	s.held--
	if l.head != nil {
		s.ready(l)
		if s.idle > 0 {
			s.work.Signal()
		}
	}
	s.checkDrained()
}

func (s *Scheduler) execute() {
	defer s.executors.Done()
	s.mu.Lock()
	for {
		l, j := s.next()
		if j == nil {
			if s.stopped {
				s.mu.Unlock()
				return
			}
			s.idle++
			s.work.Wait()
			s.idle--
			continue
		}
		s.mu.Unlock()
		verdict := s.run(j)
		s.mu.Lock()
		s.ran++
		if verdict != Held {
			s.release(l)
		}
		s.mu.Unlock()
		// Let those who read what was just handed out run: without this a
		// burst overflows the bounded queues of subscribers that keep up.
		runtime.Gosched()
		s.mu.Lock()
	}
}

// run runs one job and survives its panic.
func (s *Scheduler) run(j *Job) (v Verdict) {
	task := j.Task
	defer func() {
		if value := recover(); value != nil {
			s.panicked(value)
			s.fail(task, &PanicError{Value: value})
			v = Done
		}
	}()
	return task.Run()
}

// fail tells a task that it did not run to its end, and survives its panic.
func (s *Scheduler) fail(task Task, err error) {
	defer func() {
		if value := recover(); value != nil {
			s.panicked(value)
		}
	}()
	task.Fail(err)
}

func (s *Scheduler) panicked(value any) {
	s.mu.Lock()
	s.panics++
	s.mu.Unlock()
	if s.cfg.OnPanic != nil {
		s.cfg.OnPanic(value, debug.Stack())
	}
}

// Drain refuses new jobs and those that wait for a slot, and waits until all
// others are over. It returns the cause of ctx if that ends first.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.refuse()
	s.mu.Unlock()
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refuse closes the doors; mu is held.
func (s *Scheduler) refuse() {
	if s.closing {
		return
	}
	s.closing = true
	for _, tenants := range []*list.List{&s.underShare, &s.overShare} {
		for tenants.Len() > 0 {
			w := tenants.Front().Value.(*Tenant).waiters[0]
			s.removeWaiter(w)
			w.answer(noPass, ErrClosed)
		}
	}
	s.checkDrained()
}

func (s *Scheduler) checkDrained() {
	if !s.closing || s.queued > 0 || s.held > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// Close drains without a limit and ends the executors. What held jobs wait for
// has to come first.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.refuse()
	s.mu.Unlock()
	<-s.drained
	s.mu.Lock()
	s.stopped = true
	s.work.Broadcast()
	s.mu.Unlock()
	s.executors.Wait()
}

// Stats describe the scheduler now, and since it started.
type Stats struct {
	// Queued jobs hold a slot of Capacity; Waiting publishes want one.
	Queued, Capacity, Waiting int
	// Busy is the number of lanes held by a job.
	Busy int
	// Inline jobs ran on their caller's goroutine, Executed ones on an
	// executor.
	Inline, Executed uint64
	// Panics of tasks, each of which an executor or caller survived.
	Panics uint64
}

// Stats reads the scheduler's state.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Queued: s.queued, Capacity: s.capacity, Waiting: s.waiting, Busy: s.held,
		Inline: s.inline, Executed: s.ran, Panics: s.panics,
	}
}
