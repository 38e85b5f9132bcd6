//go:build !race

package tracker

import (
	"runtime"
	"testing"
	"unsafe"
)

func steady() (t *Tracker, round func()) {
	t = New(Options{MaxInFlight: 10000, MaxAttempts: 5}, Start{})
	h := Holder{Consumer: "worker", Principal: "p", Connection: 1}
	var claims []Claim
	var bury []uint64
	now := Time(0)
	return t, func() {
		now++
		claims, bury, _ = t.Take(claims[:0], bury[:0], h, 100, now, now+1000, t.HighWater()+100)
		for _, c := range claims {
			if _, err := t.Ack(c.Offset, t.HighWater()); err != nil {
				panic(err)
			}
		}
		bury = t.Lapse(now, bury)
	}
}

func TestHandOutsAndAcksAllocateNothing(t *testing.T) {
	tr, round := steady()
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(2000, round); n != 0 {
		t.Errorf("%v allocations a round of 100 hand-outs and acks", n)
	}
	if tr.Committed() != tr.HighWater() || tr.Counts() != (Counts{}) {
		t.Error("something is left over")
	}
}

// What lapses and is handed out again, and is acked in any order.
func TestLapsesAndGapsAllocateNothing(t *testing.T) {
	tr := New(Options{MaxInFlight: 10000}, Start{})
	h := Holder{Principal: "p"}
	var claims []Claim
	var bury []uint64
	now := Time(0)
	round := func() {
		now += 10
		claims, bury, _ = tr.Take(claims[:0], bury[:0], h, 100, now, now+10, tr.HighWater()+100)
		now += 10
		bury = tr.Lapse(now, bury)
		claims, bury, _ = tr.Take(claims[:0], bury[:0], h, 100, now, now+10, tr.HighWater())
		for i := range claims {
			if _, err := tr.Ack(claims[(i*37+11)%len(claims)].Offset, tr.HighWater()); err != nil {
				panic(err)
			}
		}
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	if tr.Counts() != (Counts{}) {
		t.Error("something is left over")
	}
}

// inFlight is a tracker with n claims of 100 workers.
func inFlight(n int) *Tracker {
	t := New(Options{MaxInFlight: n}, Start{})
	claims := make([]Claim, 0, 100)
	for i := range n / 100 {
		claims, _, _ = t.Take(claims[:0], nil, Holder{"worker", "p", uint64(i % 100)}, 100, Time(i), Time(i)+1e9, uint64(n))
	}
	return t
}

// bytesAClaim is what n claims take of the heap, each. least over some runs: the
// heap is measured while others use it.
func bytesAClaim(n int) float64 {
	least := 0.0
	for i := range 5 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		t := inFlight(n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := float64(after.HeapAlloc)/float64(n) - float64(before.HeapAlloc)/float64(n)
		runtime.KeepAlive(t)
		if i == 0 || each < least {
			least = each
		}
	}
	return least
}

func TestMemoryOfClaims(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n != 32 {
		t.Errorf("an entry has %d bytes, want 32", n)
	}
	if n := bytesAClaim(10000); n > 110 {
		t.Errorf("%.1f bytes a claim, want 110 at most", n)
	} else {
		t.Logf("%.1f bytes a claim", n)
	}
}

func BenchmarkMemory(b *testing.B) {
	var n float64
	for b.Loop() {
		n = bytesAClaim(10000)
	}
	b.ReportMetric(n, "B/claim")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkTake100Ack100(b *testing.B) {
	_, round := steady()
	b.ReportAllocs()
	for b.Loop() {
		round()
	}
}

// The last of 10,000 claims is acked first: every second ack makes a gap.
func BenchmarkAckWithGaps(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		t := inFlight(10000)
		b.StartTimer()
		for i := range uint64(10000) {
			x := i * 7919 % 10000
			if _, err := t.Ack(x, 10000); err != nil {
				b.Fatal(err)
			}
		}
	}
}
