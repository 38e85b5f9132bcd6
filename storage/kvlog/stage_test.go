package kvlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/shardlog"
)

var errDisk = errors.New("disk gone")

func TestAWriteIsInvisibleUntilItIsCommitted(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var r recorded
	m.Write(put("k", "one"), &r)
	wantAbsent(t, m, "k")
	if r.len() != 0 {
		t.Fatal("answered before the commit")
	}
	l.commit()
	wantValue(t, m, "k", "one")
	if a := r.last(t); a.err != nil || !same(a.result, Result{Applied: true, HasVersion: true}) {
		t.Fatalf("answer %+v", a)
	}
}

func TestAFailedCommitNeverBecomesVisible(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var r recorded
	m.Write(put("k", "one"), &r)
	l.commit()
	m.Write(put("k", "two"), &r)
	m.Write(del("k"), &r)
	m.Write(put("n", "new"), &r)
	l.fail(errDisk)
	for _, a := range r.ends[1:] {
		if !errors.Is(a.err, errDisk) {
			t.Fatalf("answer %+v", a)
		}
	}
	if r.len() != 4 {
		t.Fatalf("%d answers", r.len())
	}
	wantValue(t, m, "k", "one")
	wantAbsent(t, m, "n")
	// The offsets are given anew, and the map goes on.
	m.Write(put("k", "three").when(AtVersion(0)), &r)
	l.commit()
	if a := r.last(t); !a.result.Applied || a.result.Version != 1 {
		t.Fatalf("answer %+v", a)
	}
	wantValue(t, m, "k", "three")
}

func TestConditionsAreJudgedAgainstWhatIsStaged(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var first, second, third, fourth recorded
	m.Write(put("k", "one").when(Absent()), &first)
	m.Write(put("k", "two").when(AtVersion(0)), &second)
	m.Write(put("k", "three").when(AtVersion(0)), &third) // refused: 1 is staged
	m.Write(put("k", "four").when(Absent()), &fourth)
	if first.len()+second.len()+third.len()+fourth.len() != 0 {
		t.Fatal("a refusal that rests on a staged write was answered before its commit")
	}
	l.commit()
	if !first.last(t).result.Applied || !second.last(t).result.Applied {
		t.Fatal("writes not applied")
	}
	for _, r := range []*recorded{&third, &fourth} {
		if a := r.last(t); a.err != nil || !same(a.result, Result{Version: 1, HasVersion: true}) {
			t.Fatalf("refusal %+v", a)
		}
	}
	wantValue(t, m, "k", "two")
}

func TestARefusalThatRestsOnAFailedWriteIsAnError(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var wrote, refused, gone recorded
	m.Write(put("k", "one"), &wrote)
	m.Write(put("k", "two").when(Absent()), &refused)
	m.Write(put("d", "x"), &wrote)
	m.Write(del("d"), &wrote)
	m.Write(del("d"), &gone) // null, if the delete before commits
	if refused.len()+gone.len() != 0 {
		t.Fatal("answered too early")
	}
	l.fail(errDisk)
	for _, r := range []*recorded{&refused, &gone} {
		if a := r.last(t); !errors.Is(a.err, errDisk) {
			t.Fatalf("answer %+v", a)
		}
	}
}

// The log gives offsets back before it tells those who had claimed them. A
// write that comes in between was judged against writes that are lost.
func TestAWriteBetweenAFailureAndItsNewsFailsToo(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var r, late recorded
	m.Write(put("k", "one"), &r)
	l.commit()
	m.Write(del("k"), &r)
	l.between = func() { m.Write(put("k", "two").when(Absent()), &late) }
	l.fail(errDisk)
	if a := late.last(t); !errors.Is(a.err, errDisk) {
		t.Fatalf("answer %+v", a)
	}
	l.commit()
	wantValue(t, m, "k", "one")
}

// The write a refusal rests on fails between the judgement and the wait.
func TestARefusalWhoseGroundIsGoneIsJudgedAgain(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var wrote recorded
	m.Write(put("k", "one"), &wrote)
	var r recorded
	judged := 0
	m.core.submit(&op{key: []byte("k"), done: &r, judge: func(o *op, v view) bool {
		if judged++; judged == 1 {
			if !v.present {
				t.Error("the staged write is not seen")
			}
			l.fail(errDisk)
		}
		o.result = refused(v)
		return false
	}})
	if a := r.last(t); judged != 2 || a.err != nil || a.result.HasVersion {
		t.Fatalf("judged %d times, %+v", judged, a)
	}
}

func TestDeleteAnswersWithTheValueItRemoved(t *testing.T) {
	l := &fakeLog{}
	m, clock := fakeMap(t, l)
	var r recorded
	m.Write(del("k"), &r)
	if a := r.last(t); a.err != nil || a.result.Applied || a.result.HasRemoved || l.appended != 0 {
		t.Fatalf("delete of an unknown key: %+v, %d appends", a, l.appended)
	}
	m.Write(put("k", "one"), &r)
	l.commit()
	m.Write(put("k", "two"), &r)
	m.Write(del("k"), &r) // of a value that is only staged
	l.commit()
	if a := r.last(t); !a.result.HasRemoved || string(a.result.Removed.Value) != "two" || a.result.Removed.Version != 1 {
		t.Fatalf("delete: %+v", a)
	}
	m.Write(put("k", "three"), &r)
	l.commit()
	m.Write(del("k"), &r) // of a committed one
	l.commit()
	if a := r.last(t); string(a.result.Removed.Value) != "three" || a.result.HasVersion {
		t.Fatalf("delete: %+v", a)
	}
	m.Write(put("k", "four").until(clock.millis()+10), &r)
	l.commit()
	clock.advance(10 * time.Millisecond)
	appended := l.appended
	m.Write(del("k").when(AtVersion(5)), &r)
	if a := r.last(t); a.err != nil || !same(a.result, Result{}) || l.appended != appended {
		t.Fatalf("conditional delete of a lapsed entry: %+v", a)
	}
	m.Write(del("k"), &r)
	l.commit()
	if a := r.last(t); a.err != nil || a.result.Applied || a.result.HasRemoved || l.appended != appended+1 {
		t.Fatalf("delete of a lapsed entry: %+v", a)
	}
	if m.Len() != 0 {
		t.Fatalf("%d keys left", m.Len())
	}
}

func TestRefusedAppendLeavesNothingStaged(t *testing.T) {
	l := &fakeLog{refuse: shardlog.ErrBusy}
	m, _ := fakeMap(t, l)
	var r recorded
	m.Write(put("k", "one"), &r)
	if a := r.last(t); !errors.Is(a.err, shardlog.ErrBusy) {
		t.Fatalf("answer %+v", a)
	}
	m.Write(put("k", "two").when(Absent()), &r)
	l.commit()
	if !r.last(t).result.Applied {
		t.Fatal("not applied")
	}
}

// again writes a second key when the first is written, as a dead letter is
// written before its cursor.
type again struct {
	m *Map
	r *recorded
}

func (a again) Written(Result, error) { a.m.Write(put("second", "2"), a.r) }

func TestAnAnswerMayWrite(t *testing.T) {
	for name, inline := range map[string]bool{"committer": false, "within the append": true} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLog{inline: inline}
			m, _ := fakeMap(t, l)
			var r recorded
			m.Write(put("first", "1"), again{m, &r})
			l.commit() // the first
			l.commit() // the second
			if !r.last(t).result.Applied {
				t.Fatal("second write not applied")
			}
			wantValue(t, m, "second", "2")
		})
	}
}

func TestSettledGetWaitsForWhatIsStaged(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	var r recorded
	m.Write(put("k", "one"), &r)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := m.GetSettled(ctx, []byte("k")); !errors.Is(err, context.Canceled) {
		t.Fatalf("settled get did not wait: %v", err)
	}
	got := make(chan Item, 1)
	go func() {
		item, _, _ := m.GetSettled(context.Background(), []byte("k"))
		got <- item
	}()
	select {
	case <-got:
		t.Fatal("settled get did not wait")
	default:
	}
	l.commit()
	if item := <-got; string(item.Value) != "one" {
		t.Fatalf("settled get %q", item.Value)
	}
}

func TestRecordsOfOthersAreCaughtUpWith(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	foreign := func(key, value string) {
		l.foreign((&CacheRecord{Key: []byte(key), Value: []byte(value)}).Append(nil))
	}
	foreign("a", "1")
	wantValue(t, m, "a", "1") // before any read
	foreign("a", "2")
	var r recorded
	m.Write(put("a", "3").when(AtVersion(1)), &r) // before any judgement
	l.commit()
	if !r.last(t).result.Applied {
		t.Fatalf("answer %+v", r.last(t))
	}
	// Between two staged writes.
	m.Write(put("b", "1"), &r)
	l.commit()
	foreign("c", "1")
	m.Write(put("d", "1"), &r)
	l.commit()
	wantValue(t, m, "c", "1")
	wantValue(t, m, "d", "1")
}

func TestClosedAnswersEverything(t *testing.T) {
	l := &fakeLog{}
	m, clock := fakeMap(t, l)
	m.Close()
	_, err := m.WriteWait(put("k", "v"))
	_, _, getErr := m.Get([]byte("k"))
	_, expErr := m.Expire(clock.millis(), 0)
	_, rangeErr := m.Range(nil)
	for _, err := range []error{err, getErr, expErr, rangeErr, m.Compact(context.Background()), m.Reload()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	m.Close()
}

func TestInvalidWritesAreRefusedBeforeAnythingIsStaged(t *testing.T) {
	l := &fakeLog{}
	m, _ := fakeMap(t, l)
	long := make([]byte, MaxKeyBytes+1)
	for name, w := range map[string]Write{
		"empty key":         put("", "v"),
		"long key":          {Key: long},
		"key not UTF-8":     put("\xff", "v"),
		"negative deadline": put("k", "v").until(-1),
		"unknown op":        {Op: Expired, Key: []byte("k")},
	} {
		var r recorded
		m.Write(w, &r)
		var invalid *InvalidWriteError
		if a := r.last(t); !errors.As(a.err, &invalid) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if l.appended != 0 {
		t.Fatalf("%d appends", l.appended)
	}
}
