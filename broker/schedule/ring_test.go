package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// backlog queues n jobs of the given cost on a new lane of t, which is ready.
func backlog(t testing.TB, tenant *Tenant, n int, cost int64, name any) *Lane {
	t.Helper()
	s := tenant.s
	l := tenant.NewLane()
	release := hold(t, s, l)
	for range n {
		j := &Job{Task: &named{name}, Cost: cost}
		pass, err := s.TryEnter(l)
		if err != nil || pass != Slot {
			t.Fatal(pass, err)
		}
		s.Submit(l, pass, j)
	}
	release()
	return l
}

type named struct{ name any }

func (n *named) Run() Verdict { return Done }
func (n *named) Fail(error)   {}

func (j *Job) name() any { return j.Task.(*named).name }

// A tenant that floods many lanes with large batches does not keep one that
// sends little from its turn: while both wait, bytes are shared evenly to
// within one quantum and one job.
func TestFloodDoesNotStarveAnother(t *testing.T) {
	s := newScheduler(Config{Share: 2000})
	flood, modest := s.NewTenant(), s.NewTenant()
	for range 10 {
		backlog(t, flood, 100, 32<<10, "flood")
	}
	backlog(t, modest, 50, 1<<10, "modest")
	served := map[any]int{}
	for served["modest"] < 50 {
		j := s.step()
		served[j.name()]++
	}
	// 50 KiB of the modest one fit its first quantum, and at most two turns of
	// the other, of two jobs each, come before and between.
	if served["flood"] > 4 {
		t.Fatalf("%d jobs of 32 KiB were served before the other tenant's 50 KiB", served["flood"])
	}
}

func TestManyTenantsShareEvenly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScheduler(Config{Share: 10_000, Quantum: 1000})
		n := rapid.IntRange(2, 6).Draw(rt, "tenants")
		var maxCost int64
		left := map[any]int{}
		for i := range n {
			tenant := s.NewTenant()
			for range rapid.IntRange(1, 4).Draw(rt, "lanes") {
				cost := rapid.Int64Range(0, 5000).Draw(rt, "cost")
				jobs := rapid.IntRange(20, 40).Draw(rt, "jobs")
				backlog(t, tenant, jobs, cost, i)
				left[i] += jobs
				maxCost = max(maxCost, cost, 1)
			}
		}
		served := map[any]int64{}
		for len(left) == n { // while all are backlogged
			j := s.step()
			served[j.name()] += max(j.Cost, 1)
			if left[j.name()]--; left[j.name()] == 0 {
				delete(left, j.name())
			}
			for a := range n {
				for b := range n {
					if diff := served[a] - served[b]; diff > 2*(s.cfg.Quantum+maxCost) {
						rt.Fatalf("tenant %d is %d bytes ahead of tenant %d", a, diff, b)
					}
				}
			}
		}
	})
}

// A job of many quanta is served, after the others had their share, without
// one walk of the ring per quantum.
func TestJobLargerThanManyQuanta(t *testing.T) {
	s := newScheduler(Config{Share: 1000})
	big, small := s.NewTenant(), s.NewTenant()
	backlog(t, big, 1, 16<<20, "big")
	backlog(t, small, 600, 64<<10, "small")
	before := 0
	for j := s.step(); j.name() != "big"; j = s.step() {
		before++
	}
	if want := (16<<20)/(64<<10) - 1; before != want {
		t.Fatalf("%d quanta of the other tenant came first, want %d", before, want)
	}
	backlog(t, big, 1, 1<<50, "huge")
	for range 600 - before {
		if j := s.step(); j.name() != "small" {
			t.Fatalf("served %v out of turn", j.name())
		}
	}
	if j := s.step(); j.name() != "huge" {
		t.Fatalf("served %v", j.name())
	}
	if s.step() != nil {
		t.Fatal("something is left")
	}
}

// A tenant with one lane is in and out of the ring with every job. It must
// not save up what it did not use, nor lose its turn.
func TestIdleTenantKeepsNoCredit(t *testing.T) {
	s := newScheduler(Config{Share: 1000})
	tenant := s.NewTenant()
	backlog(t, tenant, 3, 1, "a")
	for range 3 {
		s.step()
		if tenant.deficit > 0 && tenant.readyHead == nil {
			t.Fatalf("an idle tenant keeps a credit of %d", tenant.deficit)
		}
	}
	if tenant.inRing || tenant.deficit != 0 || s.ring.n != 0 {
		t.Fatalf("not idle: %+v", tenant)
	}
	tenant.deficit = -100 << 10 // a debt
	backlog(t, tenant, 1, 1, "a")
	other := s.NewTenant()
	backlog(t, other, 3, 60<<10, "b")
	var order []any
	for j := s.step(); j != nil; j = s.step() {
		order = append(order, j.name())
	}
	if order[0] != "b" || order[len(order)-1] == nil || tenant.deficit > 0 {
		t.Fatalf("a tenant in debt was served first: %v", order)
	}
}

func TestLanesOfATenantTakeTurns(t *testing.T) {
	s := newScheduler(Config{Share: 1000})
	tenant := s.NewTenant()
	for lane := range 3 {
		backlog(t, tenant, 2, 1, lane)
	}
	for i := range 6 {
		if j := s.step(); j.name() != i%3 {
			t.Fatalf("job %d came from lane %v", i, j.name())
		}
	}
}
