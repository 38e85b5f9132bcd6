package admission

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1000, 0)

func TestQuota(t *testing.T) {
	type step struct {
		at              time.Duration
		bytes, messages int64
		wait            time.Duration
	}
	for _, c := range []struct {
		name  string
		quota Quota
		burst time.Duration
		steps []step
	}{
		{"none", Quota{}, time.Second, []step{{0, 1 << 60, 1 << 60, 0}}},
		{"bytes", Quota{BytesPerSec: 1000}, time.Second, []step{
			{0, 600, 1, 0},
			{0, 600, 1, 200 * time.Millisecond},
			{199 * time.Millisecond, 600, 1, time.Millisecond},
			{200 * time.Millisecond, 600, 1, 0},
			{200 * time.Millisecond, 1, 1, time.Millisecond},
		}},
		{"messages", Quota{MessagesPerSec: 10}, 500 * time.Millisecond, []step{
			{0, 1 << 40, 5, 0},
			{0, 0, 1, 100 * time.Millisecond},
			{100 * time.Millisecond, 0, 1, 0},
		}},
		{"the slower of the two", Quota{BytesPerSec: 1000, MessagesPerSec: 10}, time.Second, []step{
			{0, 1000, 10, 0},
			{0, 100, 5, 500 * time.Millisecond},
			{0, 700, 5, 700 * time.Millisecond},
		}},
		{"refusal costs nothing", Quota{BytesPerSec: 1000, MessagesPerSec: 10}, time.Second, []step{
			{0, 1000, 1, 0},
			{0, 500, 9, 500 * time.Millisecond},
			{0, 0, 9, 0},
		}},
		{"more than the burst, from a full bucket", Quota{BytesPerSec: 1000}, time.Second, []step{
			{0, 5000, 1, 0},
			{0, 1, 1, 4*time.Second + time.Millisecond},
			{4 * time.Second, 5000, 1, time.Second},
			{5 * time.Second, 5000, 1, 0},
		}},
		{"an idle tenant saves up one burst", Quota{BytesPerSec: 1000}, time.Second, []step{
			{time.Hour, 1000, 1, 0},
			{time.Hour, 1, 1, time.Millisecond},
		}},
		{"a clock that steps back", Quota{BytesPerSec: 1000}, time.Second, []step{
			{10 * time.Second, 1000, 1, 0},
			{9 * time.Second, 1000, 1, 2 * time.Second},
			{11 * time.Second, 1000, 1, 0},
		}},
		{"largest numbers", Quota{BytesPerSec: 1}, time.Second, []step{
			{0, math.MaxInt64, 1, 0},
			{0, 1, 1, math.MaxInt64 / 4},
		}},
		{"fastest rate", Quota{BytesPerSec: math.MaxInt64}, time.Second, []step{
			{0, math.MaxInt64, 1, 0},
			{0, math.MaxInt64, 1, time.Second},
		}},
	} {
		a := NewAccount("t", c.quota, c.burst, start)
		for i, s := range c.steps {
			got := a.Take(start.Add(s.at), s.bytes, s.messages)
			if diff := got - s.wait; diff < 0 || diff > 2 {
				t.Errorf("%s, step %d: wait %v, want %v", c.name, i, got, s.wait)
			}
		}
	}
}

// Over any run of time a tenant gets no more than its rate and one burst, plus
// the one batch that may exceed a full bucket; and an answer "wait" is exact:
// waiting that long is enough, a little less is not.
func TestQuotaIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rate := rapid.Int64Range(1, 1_000_000).Draw(rt, "rate")
		burst := time.Duration(rapid.IntRange(1, 5000).Draw(rt, "burst")) * time.Millisecond
		a := NewAccount("t", Quota{BytesPerSec: rate}, burst, start)
		now := start
		var taken, largest int64
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond)
			n := rapid.Int64Range(1, 2*rate).Draw(rt, "bytes")
			if wait := a.Take(now, n, 1); wait > 0 {
				if early := a.Take(now.Add(wait-1), n, 1); early == 0 {
					rt.Fatalf("told to wait %v, admitted before", wait)
				}
				now = now.Add(wait)
				if again := a.Take(now, n, 1); again != 0 {
					rt.Fatalf("told to wait %v, then %v more", wait, again)
				}
			}
			taken += n
			largest = max(largest, n)
			allowed := float64(rate)*(now.Sub(start)+burst).Seconds() + float64(largest)
			if float64(taken) > allowed+1 {
				rt.Fatalf("%d bytes taken, %f allowed", taken, allowed)
			}
		}
	})
}

func TestRefund(t *testing.T) {
	a := NewAccount("t", Quota{BytesPerSec: 1000, MessagesPerSec: 10}, time.Second, start)
	for range 100 {
		if wait := a.Take(start, 1000, 10); wait != 0 {
			t.Fatalf("wait %v after a refund", wait)
		}
		a.Refund(1000, 10)
	}
	if wait := a.Take(start, 1000, 10); wait != 0 {
		t.Fatal(wait)
	}
	if wait := a.Take(start, 1000, 1); wait != time.Second {
		t.Fatalf("refunds added up to credit: wait %v", wait)
	}
}

func TestOverloadText(t *testing.T) {
	for want, err := range map[string]*OverloadedError{
		"publish queue full; retry in 10 ms":           {QueueFull, 10 * time.Millisecond},
		"tenant publish quota exceeded; retry in 1 ms": {TenantQuota, time.Nanosecond},
		"publish byte budget used up":                  {BytesFull, 0},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}
