package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// What each policy does when a stage has no room. Counters say so, nothing is
// kept, and the refusal does not count against the tenant's quota.
func TestPoliciesAtEachStage(t *testing.T) {
	stages := []struct {
		reason admission.Reason
		cfg    Config
		// fill uses up the stage's room, on a stream whose lane is busy.
		fill func(f *fixture, sh *stream.Shard)
	}{
		{TenantQuota, Config{Quota: admission.Quota{MessagesPerSec: 10}}, func(f *fixture, sh *stream.Shard) {
			for range 8 { // two are gone for making the lane busy
				f.must(f.Publish(f.t.Context(), sh, f.id, batchOf("x"), Fail, nil))
			}
		}},
		{BytesFull, Config{ConnInflightBytes: 100}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.id, sized(80), Fail, nil))
		}},
		{BytesFull, Config{ConnInflightBytes: 100, ConnTotalInflightBytes: 150}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.conn.Identity(testTenant, "another"), sized(100), Fail, nil))
		}},
		{BytesFull, Config{InflightBytes: 100}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.NewConnection().Identity(testTenant, "someone"), sized(80), Fail, nil))
		}},
		{QueueFull, Config{Schedule: schedule.Config{Share: 3, Executors: 2}}, func(f *fixture, sh *stream.Shard) {
			for range 3 {
				f.must(f.Publish(f.t.Context(), sh, f.id, batchOf("x"), Fail, nil))
			}
		}},
	}
	policies := map[string]Policy{"drop": Drop, "fail": Fail, "try": Try, "wait": Wait, "backpressure": Backpressure}
	for i, stage := range stages {
		for name, policy := range policies {
			t.Run(fmt.Sprintf("%d %s %s", i, stage.reason, name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := newFixture(t, stage.cfg)
					defer f.Close()
					sh := f.shard("s")
					defer f.busy(sh)()
					stage.fill(f, sh)
					before := f.Stats()

					ctx, cancel := context.WithCancelCause(t.Context())
					gone := errors.New("the connection is gone")
					// No 90-byte batch has room anywhere, and after a minute
					// of waiting the connection goes.
					stop := time.AfterFunc(time.Minute, func() { cancel(gone) })
					defer stop.Stop()
					began := time.Now()
					var done outcomes
					err := f.Publish(ctx, sh, f.id, sized(90), policy, &done)
					waited := time.Since(began)

					var overload *OverloadedError
					isOverload := errors.As(err, &overload) && overload.Reason == stage.reason
					wantWait := map[Policy]time.Duration{Wait: DefaultQueueWait, Backpressure: time.Minute}[policy]
					var want admission.Stats
					switch {
					case stage.reason == TenantQuota && policy == Backpressure:
						if err != nil || waited != 100*time.Millisecond {
							t.Fatalf("%v after %v", err, waited)
						}
						want.ThrottledDelayed = 1
					case policy == Backpressure:
						if err != gone || waited != time.Minute {
							t.Fatalf("%v after %v", err, waited)
						}
					case stage.reason == TenantQuota:
						if !isOverload || waited != 0 || overload.RetryAfter != 100*time.Millisecond {
							t.Fatalf("%v (%+v) after %v", err, overload, waited)
						}
					default:
						if !isOverload || waited != wantWait || overload.RetryAfter != 10*time.Millisecond {
							t.Fatalf("%v (%+v) after %v", err, overload, waited)
						}
					}
					if policy != Backpressure {
						dropped, refused := uint64(0), uint64(0)
						switch policy {
						case Drop:
							dropped = 1
						case Fail, Wait:
							refused = 1
						}
						switch stage.reason {
						case TenantQuota:
							want.ThrottledDropped, want.ThrottledRefused = dropped, refused
						case BytesFull:
							want.BytesFullDropped, want.BytesFullRefused = dropped, refused
						case QueueFull:
							want.QueueFullDropped, want.QueueFullRefused = dropped, refused
						}
					}
					for _, got := range f.TenantStats() {
						got.Messages, got.Bytes = 0, 0
						if got != want {
							t.Errorf("counted %+v, want %+v", got, want)
						}
					}
					if err != nil {
						after := f.Stats()
						if after.InflightBytes != before.InflightBytes || after.Publish.Queued != before.Publish.Queued || after.Publish.Waiting != 0 {
							t.Errorf("a refused publish left %+v, before %+v", after, before)
						}
						if len(done.all()) != 0 {
							t.Error("a refused publish was completed")
						}
					}
				})
			})
		}
	}
}

// Refusals past the quota stage give back what they took of it.
func TestRefusalIsRefunded(t *testing.T) {
	for name, cfg := range map[string]Config{
		"bytes": {ConnInflightBytes: 100},
		"slot":  {Schedule: schedule.Config{Share: 1, Executors: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cfg.Quota = admission.Quota{BytesPerSec: 1000, MessagesPerSec: 10}
				f := newFixture(t, cfg)
				defer f.Close()
				sh := f.shard("s")
				free := f.busy(sh)
				f.must(f.Publish(t.Context(), sh, f.id, sized(80), Fail, nil))
				for range 100 {
					var overload *OverloadedError
					if err := f.Publish(t.Context(), sh, f.id, sized(80), Fail, nil); !errors.As(err, &overload) || overload.Reason == TenantQuota {
						t.Fatal(err)
					}
				}
				free()
				synctest.Wait()
				// 3 of 10 messages and 82 of 1000 bytes are gone.
				for range 7 {
					f.must(f.Publish(t.Context(), sh, f.id, sized(100), Fail, nil))
				}
				if f.Publish(t.Context(), sh, f.id, sized(100), Fail, nil) == nil {
					t.Fatal("more than the quota was admitted")
				}
			})
		})
	}
}

// One deadline covers bytes and slot: what the first wait took, the second
// has not.
func TestWaitHasOneDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, Config{ConnInflightBytes: 100, Schedule: schedule.Config{Share: 1, Executors: 1}})
		defer f.Close()
		sh, other := f.shard("s"), f.shard("other")
		defer f.busy(sh)()
		freeOther := f.busy(other)
		// The one slot is taken, by another connection; the identity's bytes
		// are held by a publish that waits for the slot.
		f.must(f.Publish(t.Context(), sh, f.NewConnection().Identity(testTenant, "x"), sized(1), Fail, nil))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = f.Publish(ctx, other, f.id, sized(100), Backpressure, nil) }()
		synctest.Wait()
		time.AfterFunc(1500*time.Millisecond, cancel) // now the bytes are free

		began := time.Now()
		err := f.Publish(t.Context(), other, f.id, sized(50), Wait, nil)
		var overload *OverloadedError
		if !errors.As(err, &overload) || overload.Reason != QueueFull || time.Since(began) != DefaultQueueWait {
			t.Fatalf("%v after %v", err, time.Since(began))
		}

		// And a wait that ends well, when the lane it is for becomes free.
		time.AfterFunc(time.Second, freeOther)
		began = time.Now()
		var done outcomes
		if err := f.Publish(t.Context(), other, f.id, sized(50), Wait, &done); err != nil || time.Since(began) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if r := done.all(); len(r) != 1 || r[0].Err != nil {
			t.Fatalf("%+v", r)
		}
	})
}
