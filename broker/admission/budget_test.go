package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func (b *budget) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiters.Len()
}

// Each budget refuses on its own, and a refusal leaves the others untouched.
func TestEachBudgetRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		refuse func(b *Budgets) *Identity // an identity for which 60 bytes are too many
	}{
		{"identity", Limits{100, 1000, 1000}, func(b *Budgets) *Identity {
			conn := b.NewConnection()
			conn.Identity("t", "a").TryHold(50)
			return conn.Identity("t", "a")
		}},
		{"connection", Limits{100, 100, 1000}, func(b *Budgets) *Identity {
			conn := b.NewConnection()
			conn.Identity("t", "a").TryHold(50)
			return conn.Identity("t", "b")
		}},
		{"process", Limits{100, 100, 100}, func(b *Budgets) *Identity {
			b.NewConnection().Identity("t", "a").TryHold(50)
			return b.NewConnection().Identity("t", "a")
		}},
	} {
		b := NewBudgets(c.limits)
		id := c.refuse(b)
		own, total := id.InUse(), id.conn.InUse()
		if _, ok := id.TryHold(60); ok {
			t.Errorf("%s: 60 of 100 bytes admitted beside 50", c.name)
		}
		if id.InUse() != own || id.conn.InUse() != total || b.InUse() != 50 {
			t.Errorf("%s: a refusal kept bytes: %d, %d, %d", c.name, id.InUse(), id.conn.InUse(), b.InUse())
		}
		hold, ok := id.TryHold(50)
		if !ok || b.InUse() != 100 {
			t.Errorf("%s: the last 50 bytes were refused", c.name)
		}
		hold.Release()
		if b.InUse() != 50 || id.InUse() != own || id.conn.InUse() != total {
			t.Errorf("%s: after the release: %d, %d, %d", c.name, id.InUse(), id.conn.InUse(), b.InUse())
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		gone := errors.New("gone")
		cancel(gone)
		if _, err := id.Hold(ctx, 60); err != gone || b.InUse() != 50 || id.InUse() != own {
			t.Errorf("%s: a wait that ended: %v, %d bytes in use", c.name, err, b.InUse())
		}
	}
}

func TestCostAboveTheBudgetIsAdmittedAlone(t *testing.T) {
	b := NewBudgets(Limits{100, 200, 300})
	id := b.NewConnection().Identity("t", "a")
	hold, ok := id.TryHold(250)
	if !ok || id.InUse() != 100 || id.conn.InUse() != 200 || b.InUse() != 250 {
		t.Fatalf("%v: %d, %d, %d", ok, id.InUse(), id.conn.InUse(), b.InUse())
	}
	if _, ok := id.TryHold(1); ok {
		t.Fatal("admitted beside it")
	}
	hold.Release()
	if id.InUse() != 0 || id.conn.InUse() != 0 || b.InUse() != 0 {
		t.Fatal("bytes left")
	}
}

// Bytes go to those who wait in the order they came, a small one not past a
// large one; when the large one gives up, the small one is served.
func TestBudgetIsFirstComeFirstServed(t *testing.T) {
	b := &budget{limit: 100}
	b.tryAcquire(80)
	ctx, cancel := context.WithCancel(context.Background())
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { large <- b.acquire(ctx, 90) }()
	eventually(t, "the large one waits", func() bool { return b.waiting() == 1 })
	go func() { small <- b.acquire(context.Background(), 10) }()
	eventually(t, "the small one waits", func() bool { return b.waiting() == 2 })
	if b.tryAcquire(1) {
		t.Fatal("one that came later was served first")
	}
	cancel()
	if err := <-large; err != context.Canceled {
		t.Fatal(err)
	}
	if err := <-small; err != nil || b.inUse() != 90 {
		t.Fatal(err, b.inUse())
	}
}

func TestClosedConnectionRefuses(t *testing.T) {
	b := NewBudgets(Limits{100, 100, 100})
	conn := b.NewConnection()
	id := conn.Identity("t", "a")
	hold, _ := id.TryHold(100)
	waits := make(chan error, 1)
	go func() {
		_, err := id.Hold(context.Background(), 1)
		waits <- err
	}()
	eventually(t, "one waits", func() bool { return id.own.waiting() == 1 })
	conn.Close()
	if err := <-waits; err != ErrConnectionClosed {
		t.Fatal(err)
	}
	for _, id := range []*Identity{id, conn.Identity("t", "b")} {
		if _, err := id.Hold(context.Background(), 1); err != ErrConnectionClosed {
			t.Fatal(err)
		}
		if _, ok := id.TryHold(1); ok {
			t.Fatal("admitted")
		}
	}
	hold.Release()
	if b.InUse() != 0 {
		t.Fatal("bytes left")
	}
}

func TestIdentitiesOfAConnection(t *testing.T) {
	conn := NewBudgets(Limits{1, 1, 1}).NewConnection()
	a, again, other := conn.Identity("t", "a"), conn.Identity("t", "a"), conn.Identity("t/a", "")
	if a != again || a == other {
		t.Fatal("an identity is a tenant and a subject")
	}
	a.Close()
	if conn.Identity("t", "a") != a {
		t.Fatal("an identity with a stream left was forgotten")
	}
	a.Close()
	again.Close()
	other.Close()
	if len(conn.identities) != 0 {
		t.Fatalf("%d identities are kept without a stream", len(conn.identities))
	}
}

// Many waiters on all three levels: never over a limit, nothing left over.
func TestBudgetsUnderLoad(t *testing.T) {
	b := NewBudgets(Limits{40, 60, 100})
	var inUse atomic.Int64
	var wait sync.WaitGroup
	for c := range 3 {
		conn := b.NewConnection()
		for i := range 4 {
			id := conn.Identity("t", string(rune('a'+i%2)))
			wait.Add(1)
			go func() {
				defer wait.Done()
				rng := rand.New(rand.NewPCG(uint64(c), uint64(i)))
				for range 500 {
					n := 1 + rng.Int64N(40)
					ctx, cancel := context.WithCancel(context.Background())
					if rng.IntN(4) == 0 {
						cancel()
					}
					hold, err := id.Hold(ctx, n)
					cancel()
					if err != nil {
						continue
					}
					if now := inUse.Add(n); now > 100 {
						t.Errorf("%d bytes of 100 in use", now)
					}
					if id.InUse() > 40 || conn.InUse() > 60 {
						t.Errorf("identity %d of 40, connection %d of 60", id.InUse(), conn.InUse())
					}
					inUse.Add(-n)
					hold.Release()
				}
			}()
		}
	}
	wait.Wait()
	if b.InUse() != 0 {
		t.Fatalf("%d bytes left", b.InUse())
	}
}
