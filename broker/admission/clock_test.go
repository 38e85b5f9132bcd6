package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

// A clock that is set neither keeps a tenant from publishing nor gives it more
// than its rate.
func TestQuotaOnASteppedClock(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour, 87_600 * time.Hour, -400_000 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(stepped.Clock)
			a := NewAccount("t", Quota{MessagesPerSec: 10}, time.Second, clock.Now())
			take := func(n int64) time.Duration { return a.Take(clock.Now(), 0, n) }
			for range 3 {
				if wait := take(10); wait != 0 {
					t.Fatalf("a step of %v: the burst waits for %v", by, wait)
				}
				clock.Step(by)
				if wait := take(1); wait != 100*time.Millisecond {
					t.Fatalf("a step of %v: one more than the burst waits for %v", by, wait)
				}
				time.Sleep(100 * time.Millisecond)
				if wait := take(1); wait != 0 {
					t.Fatalf("a step of %v: it still waits for %v", by, wait)
				}
				by = -by
				time.Sleep(time.Second)
			}
		})
	}
}
