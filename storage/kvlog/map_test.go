package kvlog

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

func TestValuesOutliveAReopen(t *testing.T) {
	for _, mode := range []shardlog.FsyncMode{shardlog.None, shardlog.Periodic, shardlog.OnCommit} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.logs.Fsync, r.logs.FsyncInterval = mode, time.Second }).cleanup(t)
			first := r.write(t, put("a", "1"))
			r.write(t, put("b", "2").until(r.clock.millis()+1000))
			r.write(t, put("c", "3"))
			r.write(t, del("c"))
			for range 2 {
				wantValue(t, r.m, "a", "1")
				wantValue(t, r.m, "b", "2")
				wantAbsent(t, r.m, "c")
				item, _, _ := r.m.Get([]byte("a"))
				if item.Version != first.Version || item.ExpiresAtMillis != 0 {
					t.Fatalf("item %+v, written as %+v", item, first)
				}
				r.reopen(t)
			}
			r.clock.advance(time.Second)
			wantAbsent(t, r.m, "b")
			r.reopen(t)
			wantAbsent(t, r.m, "b")
		})
	}
}

// Every order of three deadlines, by put and by put_if, with a restart or a
// compaction between: the last accepted put alone decides.
func TestTheLastPutDecidesTheDeadline(t *testing.T) {
	deadlines := map[string]time.Duration{"none": 0, "short": time.Second, "long": time.Minute}
	between := map[string]func(*testing.T, *rig){
		"nothing":    func(*testing.T, *rig) {},
		"restart":    func(t *testing.T, r *rig) { r.reopen(t) },
		"compaction": func(t *testing.T, r *rig) { r.compact(t) },
		"both":       func(t *testing.T, r *rig) { r.compact(t); r.reopen(t) },
	}
	for firstName, first := range deadlines {
		for secondName, second := range deadlines {
			for name, step := range between {
				for _, conditional := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s,%s,%s,%v", firstName, secondName, name, conditional), func(t *testing.T) {
						r := newRig(t, nil).cleanup(t)
						at := func(d time.Duration) int64 {
							if d == 0 {
								return 0
							}
							return r.clock.millis() + d.Milliseconds()
						}
						one := r.write(t, put("k", "old").until(at(first)))
						step(t, r)
						w := put("k", "new").until(at(second))
						if conditional {
							w.Condition = AtVersion(one.Version)
						}
						if res := r.write(t, w); !res.Applied {
							t.Fatalf("second put: %+v", res)
						}
						step(t, r)
						for passed := time.Duration(0); passed <= 2*time.Minute; passed += 500 * time.Millisecond {
							if _, err := r.m.Expire(r.clock.millis(), 0); err != nil {
								t.Fatal(err)
							}
							if second == 0 || passed < second {
								wantValue(t, r.m, "k", "new")
							} else {
								wantAbsent(t, r.m, "k")
							}
							r.clock.advance(500 * time.Millisecond)
						}
					})
				}
			}
		}
	}
}

// The edges of the number space of a deadline.
func TestDeadlinesAtTheEdges(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("k", "old").until(r.clock.millis()+50))
	if _, err := r.m.WriteWait(put("k", "new").until(-1)); err == nil {
		t.Fatal("a negative deadline was taken")
	}
	item, found, err := r.m.Get([]byte("k"))
	if err != nil || !found || string(item.Value) != "old" || item.ExpiresAtMillis != r.clock.millis()+50 {
		t.Fatalf("a refused put changed the key: %+v, %v, %v", item, found, err)
	}
	for _, deadline := range []int64{1, r.clock.millis(), r.clock.millis() + 1, 1 << 53, 1<<53 + 1, 1<<63 - 1} {
		r.write(t, put("k", "v").until(deadline))
		for range 2 {
			item, found, err := r.m.Get([]byte("k"))
			if live := deadline > r.clock.millis(); err != nil || found != live || (live && item.ExpiresAtMillis != deadline) {
				t.Fatalf("deadline %d: %+v, %v, %v", deadline, item, found, err)
			}
			r.reopen(t)
		}
	}
}

func TestAValueThatCannotBeReadIsNoMiss(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("k", "value"))
	seg := r.log.Segments()[0]
	if err := r.mem.FlipBit(fmt.Sprintf("%s/%s", shardDir, segment.FileName(seg.ID)), (seg.Bytes-1)*8); err != nil {
		t.Fatal(err)
	}
	if item, found, err := r.m.Get([]byte("k")); err == nil {
		t.Fatalf("get = %+v, %v", item, found)
	}
	if res, err := r.m.WriteWait(del("k")); err == nil {
		t.Fatalf("delete = %+v", res)
	}
}

func TestARecordThatDoesNotDecodeRefusesTheMap(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("k", "value"))
	block := sealBlock(append(newBlock(3), 1, 2, 3))
	if _, err := r.log.AppendWait(&shardlog.Entry{Kind: 0, Count: 1, Block: block}); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptionError
	if _, _, err := r.m.Get([]byte("k")); !errors.As(err, &corrupt) || corrupt.Offset != 1 {
		t.Fatalf("get: %v", err)
	}
	r.m.Close()
	if _, err := Open(r.log, r.opts); !errors.As(err, &corrupt) {
		t.Fatalf("open: %v", err)
	}
}

// What is not in the index yet is not absent.
func TestAReloadAnswersNoMisses(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("k", "v"))
	gate := fstest.NewGate()
	r.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRead}, Gate: gate, Times: 1})
	reloaded := make(chan error, 1)
	go func() { reloaded <- r.m.Reload() }()
	<-gate.Arrived()
	if s, err := r.m.core.get([]byte("k")); !errors.Is(err, ErrReloading) {
		t.Fatalf("lookup while it is read: %+v, %v", s, err)
	}
	gate.Open()
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	wantValue(t, r.m, "k", "v")
}

func TestRangeIsASnapshot(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	for i := range 50 {
		r.write(t, put(fmt.Sprintf("a/%02d", 49-i), fmt.Sprint(i)))
	}
	r.write(t, put("b/1", "x"))
	r.write(t, put("a/lapsed", "x").until(1))
	r.write(t, put("a/07", "again"))
	r.write(t, del("a/08"))
	s, err := r.m.Range([]byte("a/"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 49 || s.At != r.m.Tail() {
		t.Fatalf("%d entries at %d", s.Len(), s.At)
	}
	// What moves afterwards is found where it is, what is overwritten and
	// compacted away ends the snapshot.
	r.compact(t)
	changes, err := s.Next(1)
	if err != nil || len(changes) != 1 || string(changes[0].Key) != "a/49" || changes[0].Version != 0 {
		t.Fatalf("%+v, %v", changes, err)
	}
	changes, err = s.Next(1 << 20)
	if err != nil || len(changes) != 48 || s.Len() != 0 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	if last := changes[47]; string(last.Key) != "a/07" || string(last.Value) != "again" {
		t.Fatalf("last %+v", last)
	}
	if changes, err = s.Next(1); err != nil || len(changes) != 0 {
		t.Fatalf("after the end: %+v, %v", changes, err)
	}
	one, err := r.m.RangeKey([]byte("a/07"))
	if err != nil || one.Len() != 1 {
		t.Fatalf("%d entries, %v", one.Len(), err)
	}
	r.write(t, put("a/07", "newer"))
	r.compact(t)
	var trimmed *shardlog.TrimmedError
	if changes, err := one.Next(1); !errors.As(err, &trimmed) {
		t.Fatalf("%+v, %v", changes, err)
	}
}

func TestChangesLeaveCopiesOut(t *testing.T) {
	r := newRig(t, nil).cleanup(t)
	r.write(t, put("a", "1"))
	r.write(t, put("b", "2"))
	r.compact(t) // two copies
	at := r.m.Tail()
	r.write(t, put("c", "3"))
	r.write(t, del("c"))
	r.write(t, put("d", "4").until(r.clock.millis()+1))
	r.clock.advance(time.Millisecond)
	if n, err := r.m.Expire(r.clock.millis(), 0); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.write(t, put("e", "5"))
	var trimmed *shardlog.TrimmedError
	if _, err := r.m.Changes(0, 100); !errors.As(err, &trimmed) || trimmed.Oldest != r.m.Base() {
		t.Fatalf("changes below the base: %v", err)
	}
	for _, from := range []uint64{r.m.Base(), at} {
		got := ""
		for _, c := range allChanges(t, r.m, from) {
			got += fmt.Sprintf("%d%s%s ", c.Op, c.Key, c.Value)
		}
		if want := "0c3 1c 0d4 2d 0e5 "; got != want {
			t.Fatalf("changes %q, want %q", got, want)
		}
	}
	heard := ""
	for _, c := range r.seen.all() {
		heard += fmt.Sprintf("%d%s%s ", c.Op, c.Key, c.Value)
	}
	if want := "0a1 0b2 0c3 1c 0d4 2d 0e5 "; heard != want {
		t.Fatalf("observed %q, want %q", heard, want)
	}
}
