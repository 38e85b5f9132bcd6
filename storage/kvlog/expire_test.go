package kvlog

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/shardlog"
)

func expire(t *testing.T, m *Map, now int64, limit, want int) {
	t.Helper()
	if n, err := m.Expire(now, limit); err != nil || n != want {
		t.Fatalf("expired %d, %v, want %d", n, err, want)
	}
}

func TestLapsedEntriesAreAbsentAtOnceAndRemovedByAPass(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	start := r.clock.millis()
	for i := range 2000 {
		r.m.Write(put(fmt.Sprint(i), "v").until(start+int64(2000-i)), &recorded{})
	}
	r.write(t, put("stays", "v"))
	if next, ok := r.m.NextExpiry(); !ok || next != start+1 {
		t.Fatalf("next expiry %d, %v", next, ok)
	}
	r.clock.advance(1500 * time.Millisecond)
	wantAbsent(t, r.m, "500")
	wantValue(t, r.m, "499", "v")
	if r.m.Len() != 2001 {
		t.Fatalf("%d keys", r.m.Len())
	}
	expire(t, r.m, r.clock.millis(), 0, DefaultExpireLimit)
	settle(t, r)
	for i, c := range r.seen.all()[2001:] { // the longest lapsed first
		if c.Op != Expired || string(c.Key) != fmt.Sprint(1999-i) || len(c.Value) > 0 {
			t.Fatalf("change %d: %+v", i, c)
		}
	}
	r.reopen(t) // the next pass may be of another process
	expire(t, r.m, r.clock.millis(), 1000, 1500-DefaultExpireLimit)
	settle(t, r)
	expire(t, r.m, r.clock.millis(), 0, 0)
	if r.m.Len() != 501 || len(r.seen.all()) != 1500-DefaultExpireLimit {
		t.Fatalf("%d keys, %d changes", r.m.Len(), len(r.seen.all()))
	}
}

func TestAnExpiryIsJudgedAgainstWhatIsStaged(t *testing.T) {
	l := &fakeLog{}
	m, clock := fakeMap(t, l)
	var r recorded
	m.Write(put("k", "old").until(clock.millis()+1), &r)
	l.commit()
	clock.advance(time.Millisecond)
	m.Write(put("k", "renewed").until(clock.millis()+1), &r)
	expire(t, m, clock.millis(), 0, 0) // the put is staged, and wins
	l.commit()
	wantValue(t, m, "k", "renewed")
	clock.advance(time.Millisecond)
	expire(t, m, clock.millis(), 0, 1)
	expire(t, m, clock.millis(), 0, 0) // staged already
	m.Write(put("k", "again"), &r)     // behind it
	l.commit()
	wantValue(t, m, "k", "again")
}

func TestAnExpiryThatFailedIsTriedAgain(t *testing.T) {
	l := &fakeLog{}
	m, clock := fakeMap(t, l)
	m.Write(put("k", "old").until(clock.millis()), &recorded{})
	l.commit()
	expire(t, m, clock.millis(), 0, 1)
	l.fail(errDisk)
	l.refuse = errDisk
	if _, err := m.Expire(clock.millis(), 0); err == nil {
		t.Fatal("the refused append is no error")
	}
	expire(t, m, clock.millis(), 0, 1)
	l.commit()
	if m.Len() != 0 {
		t.Fatal("not removed")
	}
}

// The old timer fires at the moment of the new put.
func TestTheOldTimerNeverRemovesTheNewValue(t *testing.T) {
	r := newRig(t, func(r *rig) {
		r.logs.Fsync, r.logs.SegmentBytes = shardlog.None, 1<<20
	}).cleanup(t)
	now := r.clock.millis()
	for i := range 10_000 {
		r.write(t, put("k", "old").until(now))
		value := fmt.Sprint(i)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.m.Expire(now, 0) })
		r.write(t, put("k", value))
		wg.Wait()
		wantValue(t, r.m, "k", value)
	}
	settle(t, r)
	wantValue(t, r.m, "k", "9999")
}
