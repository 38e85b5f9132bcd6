package storetest

import (
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

func testPause(f *fixture) {
	for _, paused := range []bool{true, true, false, false} {
		f.ok(f.SetMovesPaused(f.ctx, paused))
		f.same(want(f.MovesPaused(f.ctx))(f), paused)
	}
}

// testLease holds of every backend; who may have the lease is another question
// for each. The expiry of one needs no test here: a lease of a millisecond is
// over when the next caller asks until it gets it.
func testLease(f *fixture) {
	const long = time.Hour
	a, b := f.prefix+"-a", f.prefix+"-b"
	may := want(f.MayPlan(f.ctx))(f)
	f.same(may, true)

	f.same(want(f.AcquireLease(f.ctx, a, long))(f).Held, true)
	token := f.token()
	// A renewal is not a change of holder.
	for range 3 {
		f.same(want(f.AcquireLease(f.ctx, a, long))(f), store.Lease{Held: true})
		f.same(f.token(), token)
	}
	switch f.Store.Name() {
	case "postgres":
		// One at a time, until it is released or over.
		f.same(want(f.AcquireLease(f.ctx, b, long))(f), store.Lease{})
		f.same(f.token(), token)
		f.ok(f.ReleaseLease(f.ctx, b)) // somebody else's
		f.same(want(f.AcquireLease(f.ctx, b, long))(f), store.Lease{})
		f.ok(f.ReleaseLease(f.ctx, a))
		f.same(want(f.AcquireLease(f.ctx, b, time.Millisecond))(f), store.Lease{Held: true, TakenOver: true})
		f.same(f.token(), token+1)
		f.eventually("a lease of a millisecond is over", func() bool {
			return want(f.AcquireLease(f.ctx, a, long))(f) == store.Lease{Held: true, TakenOver: true}
		})
		f.same(f.token(), token+2)
	case "memory":
		// Whoever asks.
		f.same(want(f.AcquireLease(f.ctx, b, long))(f), store.Lease{Held: true, TakenOver: true})
		f.same(f.token(), token+1)
		f.same(want(f.AcquireLease(f.ctx, a, long))(f), store.Lease{Held: true, TakenOver: true})
		f.same(f.token(), token+2)
	default:
		// The leader, whoever asks.
		f.same(want(f.AcquireLease(f.ctx, b, long))(f).Held, true)
	}
	f.ok(f.ReleaseLease(f.ctx, a))
	f.ok(f.ReleaseLease(f.ctx, a))
	f.same(want(f.AcquireLease(f.ctx, a, long))(f).Held, true)
	f.ok(f.ReleaseLease(f.ctx, a))
}
