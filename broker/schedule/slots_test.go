package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The capacity and borrow rule of broker 4.2, with share 4 and 3 executors.
func TestWhoGetsASlot(t *testing.T) {
	for _, c := range []struct {
		mine, others int
		admitted     bool
	}{
		{0, 0, true},
		{3, 0, true},
		{4, 0, true},  // borrows: 4 of 12 taken
		{7, 0, true},  // the last it may borrow
		{8, 0, false}, // the last 4 slots are not for borrowing
		{4, 3, true},
		{4, 4, false},
		{0, 8, true}, // under its share it may take the last ones too
		{3, 8, true},
		{3, 9, false}, // the queue is full
		{0, 12, false},
	} {
		s := newScheduler(Config{Share: 4, Executors: 3})
		mine, others := s.NewTenant(), s.NewTenant()
		mine.queued, others.queued = c.mine, c.others
		s.queued = c.mine + c.others
		if got := s.admits(mine); got != c.admitted {
			t.Errorf("holding %d beside %d of others: admitted %v", c.mine, c.others, got)
		}
		l := mine.NewLane()
		l.held = true
		pass, err := s.TryEnter(l)
		if (err == nil) != c.admitted || (pass == Slot) != c.admitted || !c.admitted && err != ErrFull {
			t.Errorf("holding %d beside %d of others: pass %d, %v", c.mine, c.others, pass, err)
		}
	}
}

// A queue whose executors stand still, for tests of who waits for what.
type standstill struct {
	*Scheduler
	t     *testing.T
	mu    sync.Mutex
	order []string
	wait  sync.WaitGroup
}

func newStandstill(t *testing.T, share, executors int) *standstill {
	return &standstill{Scheduler: newScheduler(Config{Share: share, Executors: executors}), t: t}
}

// fill takes n slots on a busy lane of tenant and queues jobs in them.
func (s *standstill) fill(tenant *Tenant, n int) *Lane {
	l := tenant.NewLane()
	l.held = true
	s.held++
	for range n {
		queue(s.t, s.Scheduler, l, 1, func() {})
	}
	return l
}

// waiter starts a publish that has to wait for a slot for l.
func (s *standstill) waiter(ctx context.Context, l *Lane, name string) {
	s.t.Helper()
	before := s.Stats().Waiting
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		pass, err := s.Enter(ctx, l)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order = append(s.order, fmt.Sprintf("%s:%d:%v", name, pass, err))
	}()
	eventually(s.t, name+" waits", func() bool { return s.Stats().Waiting == before+1 })
}

// takeOne takes a queued job of l as an executor would, and keeps the lane.
func (s *standstill) takeOne(l *Lane) {
	s.Scheduler.mu.Lock()
	defer s.Scheduler.mu.Unlock()
	l.pop()
	s.freeSlot(l.tenant)
}

func (s *standstill) wantOrder(want ...string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("admitted %v", want), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.order) >= len(want)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if fmt.Sprint(s.order) != fmt.Sprint(want) {
		s.t.Fatalf("admitted %v, want %v", s.order, want)
	}
}

func TestOneWaiterPerFreedSlot(t *testing.T) {
	s := newStandstill(t, 2, 2) // 4 slots, of which one tenant gets 2
	tenant := s.NewTenant()
	l := s.fill(tenant, 2)
	for _, name := range []string{"a", "b", "c"} {
		s.waiter(t.Context(), l, name)
	}
	s.takeOne(l)
	s.wantOrder("a:2:<nil>")
	if st := s.Stats(); st.Waiting != 2 || st.Queued != 2 {
		t.Fatalf("after one freed slot: %+v", st)
	}
	s.takeOne(l)
	s.wantOrder("a:2:<nil>", "b:2:<nil>")
	s.Scheduler.mu.Lock()
	s.freeSlot(tenant) // a's slot, given back
	s.Scheduler.mu.Unlock()
	s.wantOrder("a:2:<nil>", "b:2:<nil>", "c:2:<nil>")
	s.wait.Wait()
}

// The first in line may not have the slot that becomes free; the second may.
func TestEligibleWaiterIsNotBehindAnIneligibleOne(t *testing.T) {
	s := newStandstill(t, 2, 3) // 6 slots; borrowing ends at 4
	greedy, full, late := s.NewTenant(), s.NewTenant(), s.NewTenant()
	lg := s.fill(greedy, 4)
	lf := s.fill(full, 2)
	if _, err := s.TryEnter(lf); err != ErrFull {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	s.waiter(ctx, lg, "greedy")
	ll := late.NewLane()
	ll.held = true
	s.waiter(t.Context(), ll, "late") // under its share, the queue is full

	s.takeOne(lg) // 5 queued: greedy, which holds 3, must not borrow it
	s.wantOrder("late:2:<nil>")
	if s.Stats().Waiting != 1 {
		t.Fatalf("%+v", s.Stats())
	}
	gone := errors.New("gone")
	cancel(gone)
	s.wantOrder("late:2:<nil>", "greedy:0:gone")
	if st := s.Stats(); st.Waiting != 0 || greedy.waiting.list != nil {
		t.Fatalf("a cancelled waiter is still filed: %+v", st)
	}
	s.wait.Wait()
}

// A tenant that falls below its share by the freed slot gets it, though the
// queue is past the borrowing limit.
func TestWaiterBecomesEligibleByItsOwnFreedSlot(t *testing.T) {
	s := newStandstill(t, 2, 2)
	a, b := s.NewTenant(), s.NewTenant()
	la := s.fill(a, 2)
	s.fill(b, 1)
	s.waiter(t.Context(), la, "a")
	s.takeOne(la)
	s.wantOrder("a:2:<nil>")
	s.wait.Wait()
}

// Tenants that wait for the same slots get them in turn.
func TestWaitingTenantsTakeTurns(t *testing.T) {
	s := newStandstill(t, 2, 2)
	filler := s.NewTenant()
	s.fill(filler, 2)
	other := s.fill(s.NewTenant(), 2)
	var lanes []*Lane
	for range 2 {
		l := s.NewTenant().NewLane()
		l.held = true
		lanes = append(lanes, l)
	}
	s.waiter(t.Context(), lanes[0], "a1")
	s.waiter(t.Context(), lanes[0], "a2")
	s.waiter(t.Context(), lanes[1], "b1")
	s.takeOne(other)
	s.wantOrder("a1:2:<nil>")
	s.takeOne(other)
	s.wantOrder("a1:2:<nil>", "b1:2:<nil>")
	s.Scheduler.mu.Lock()
	s.freeSlot(filler)
	s.Scheduler.mu.Unlock()
	s.wantOrder("a1:2:<nil>", "b1:2:<nil>", "a2:2:<nil>")
	s.wait.Wait()
}

// A publish that waits for a slot for a lane that becomes free needs none.
func TestFreeLaneIsHandedToItsWaiter(t *testing.T) {
	s := newStandstill(t, 2, 1) // 2 slots
	tenant := s.NewTenant()
	full := s.fill(tenant, 2)
	idle := tenant.NewLane()
	release := hold(t, s.Scheduler, idle)
	s.waiter(t.Context(), full, "full")
	s.waiter(t.Context(), idle, "idle")
	release()
	s.wantOrder("idle:1:<nil>")
	if st := s.Stats(); !idle.held || st.Waiting != 1 || st.Queued != 2 {
		t.Fatalf("lane held %v, %+v", idle.held, st)
	}
	s.Submit(idle, Inline, jobOf(1, nil))
	s.takeOne(full)
	s.wait.Wait()
}

// Whatever happens, the queue stays within its capacity, nobody borrows the
// last share, and nobody waits who could be served.
func TestSlotInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		share, executors := rapid.IntRange(1, 4).Draw(rt, "share"), rapid.IntRange(1, 4).Draw(rt, "executors")
		s := newScheduler(Config{Share: share, Executors: executors})
		var lanes []*Lane
		for range rapid.IntRange(1, 4).Draw(rt, "tenants") {
			tenant := s.NewTenant()
			for range 2 {
				l := tenant.NewLane()
				l.held = true // nothing runs by itself
				s.held++
				lanes = append(lanes, l)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		passes := make(chan *Lane, 1000)
		var waiters sync.WaitGroup
		slots := map[*Lane]int{}
		var waiting int
		settle := func() {
			for deadline := time.Now().Add(10 * time.Second); s.Stats().Waiting != waiting; {
				if time.Now().After(deadline) {
					rt.Fatalf("%d waiting, want %d", s.Stats().Waiting, waiting)
				}
				select {
				case l := <-passes:
					slots[l]++
					waiting--
				case <-time.After(time.Millisecond):
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			l := rapid.SampledFrom(lanes).Draw(rt, "lane")
			if rapid.Bool().Draw(rt, "enter") {
				if _, err := s.TryEnter(l); err == nil {
					slots[l]++
				} else {
					waiting++
					waiters.Add(1)
					go func() {
						defer waiters.Done()
						if _, err := s.Enter(ctx, l); err == nil {
							passes <- l
						}
					}()
					for s.Stats().Waiting < waiting {
						time.Sleep(10 * time.Microsecond)
					}
				}
			} else if slots[l] > 0 {
				slots[l]--
				s.mu.Lock()
				before := s.waiting
				s.freeSlot(l.tenant)
				admitted := before - s.waiting
				s.mu.Unlock()
				if admitted > 1 {
					rt.Fatalf("one slot admitted %d", admitted)
				}
				if admitted == 1 {
					slots[<-passes]++
					waiting--
				}
			}
			settle()
			s.mu.Lock()
			total := 0
			for _, l := range lanes {
				total += slots[l]
				if len(l.tenant.waiters) > 0 && s.admits(l.tenant) {
					rt.Fatalf("a publish waits that may be admitted: tenant holds %d, queue %d of %d", l.tenant.queued, s.queued, s.capacity)
				}
			}
			if total != s.queued || s.queued > s.capacity {
				rt.Fatalf("%d slots held, %d counted, capacity %d", total, s.queued, s.capacity)
			}
			s.mu.Unlock()
		}
		cancel()
		waiters.Wait()
		if s.Stats().Waiting != 0 {
			rt.Fatalf("waiters left: %d", s.Stats().Waiting)
		}
	})
}
