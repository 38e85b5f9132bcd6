package fstest

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/storage/fs"
)

func TestRules(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		rule Rule
		want string // of six writes to /a.log: . done, x failed
	}{
		{"none matches", Rule{Ops: []Op{OpSync}}, "......"},
		{"other path", Rule{Path: ".index"}, "......"},
		{"all", Rule{}, "xxxxxx"},
		{"path", Rule{Path: ".log"}, "xxxxxx"},
		{"third", Rule{Ops: []Op{OpWrite}, Skip: 2, Times: 1}, "..x..."},
		{"third on", Rule{Ops: []Op{OpWrite}, Skip: 2}, "..xxxx"},
		{"two", Rule{Ops: []Op{OpSync, OpWrite}, Times: 2, Err: boom}, "xx...."},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewFaults(New(1))
			file := create(t, f, "/a.log")
			injected := f.Inject(c.rule)
			got, failures := "", 0
			for range 6 {
				_, err := file.WriteAt([]byte("x"), 0)
				if err == nil {
					got += "."
					continue
				}
				got += "x"
				failures++
				want := c.rule.Err
				if want == nil {
					want = ErrIO
				}
				if !errors.Is(err, want) || !errors.Is(err, ErrInjected) {
					t.Errorf("failed with %v", err)
				}
			}
			if got != c.want || injected.Hits() != failures {
				t.Errorf("rule %v: got %s, %d hits; want %s", c.rule, got, injected.Hits(), c.want)
			}
			injected.Stop()
			write(t, file, 0, []byte("x"))
		})
	}
}

func TestFailedWriteLeavesHalf(t *testing.T) {
	mem := New(1)
	f := NewFaults(mem)
	file := create(t, f, "/a")
	f.FailWrite("/a", 1, ErrNoSpace)
	n, err := file.WriteAt([]byte("abcdef"), 0)
	if n != 3 || !fs.IsFull(err) {
		t.Errorf("%d written, %v", n, err)
	}
	if b, _ := content(t, mem, "/a"); string(b) != "abc" {
		t.Errorf("content %q", b)
	}
	write(t, file, 0, []byte("abcdef"))
}

func TestFailedSyncSyncsNothing(t *testing.T) {
	mem := New(1)
	f := NewFaults(mem)
	file := create(t, f, "/a")
	check(t, f.SyncDir("/"))
	write(t, file, 0, []byte("x"))
	f.FailSync("", 1)
	if err := file.Sync(); !errors.Is(err, ErrIO) {
		t.Errorf("got %v", err)
	}
	if seen := crashes(t, mem, size); seen["empty"] == 0 {
		t.Errorf("seen %v", seen)
	}
	check(t, file.Sync())
	wantSeen(t, crashes(t, mem, size), "x")
}

func size(disk *Mem) string {
	info, err := disk.Stat("/a")
	switch {
	case err != nil:
		return err.Error()
	case info.Size == 0:
		return "empty"
	}
	return "x"
}

func TestFailureAfterTheDeed(t *testing.T) {
	mem := New(1)
	f := NewFaults(mem)
	f.Inject(Rule{Ops: []Op{OpRemove, OpCreate}, After: true})
	if _, err := f.Create("/a"); err == nil {
		t.Error("no failure")
	}
	if _, ok := content(t, mem, "/a"); !ok {
		t.Error("not created")
	}
	if err := f.Remove("/a"); err == nil {
		t.Error("no failure")
	}
	if _, ok := content(t, mem, "/a"); ok {
		t.Error("not removed")
	}
}

func TestGate(t *testing.T) {
	f := NewFaults(New(1))
	file := create(t, f, "/a")
	gate := f.Block(OpSync, "/a")
	done := make(chan error)
	go func() { done <- file.Sync() }()
	<-gate.Arrived()
	write(t, file, 0, []byte("x")) // others go on
	select {
	case err := <-done:
		t.Fatalf("the sync did not wait: %v", err)
	default:
	}
	gate.Open()
	check(t, <-done)
	check(t, file.Sync())

	f.Clear()
	failing := NewGate()
	f.Inject(Rule{Ops: []Op{OpSync}, Gate: failing, Err: ErrIO})
	failing.Open()
	if err := file.Sync(); !errors.Is(err, ErrIO) {
		t.Errorf("got %v", err)
	}
}

func TestQuota(t *testing.T) {
	mem := New(1)
	f := NewFaults(mem)
	file := create(t, f, "/a")
	write(t, file, 0, []byte("before"))
	f.SetQuota(4)
	write(t, file, 0, []byte("BEFORE")) // no growth
	n, err := file.WriteAt([]byte("123456"), 6)
	if n != 4 || !fs.IsFull(err) {
		t.Errorf("%d written, %v", n, err)
	}
	if free, err := f.Free("/"); free != 0 || err != nil {
		t.Errorf("%d bytes free, %v", free, err)
	}
	if n, err := file.WriteAt([]byte("7"), 10); n != 0 || !fs.IsFull(err) {
		t.Errorf("%d written, %v", n, err)
	}
	check(t, file.Truncate(8))
	write(t, file, 8, []byte("78"))
	f.RaiseQuota(1)
	write(t, file, 10, []byte("9"))
	check(t, f.Remove("/a"))
	if left, limited := f.Quota(); left != 11 || !limited {
		t.Errorf("%d left, %v", left, limited)
	}
	other := create(t, f, "/b")
	write(t, other, 0, make([]byte, 11))
	check(t, f.Rename("/b", "/c"))
	if left, _ := f.Quota(); left != 0 {
		t.Errorf("%d left after a rename", left)
	}
	f.LiftQuota()
	write(t, other, 0, make([]byte, 100))
}

func TestCounts(t *testing.T) {
	f := NewFaults(New(1))
	check(t, fs.WriteDurable(f, "/a", []byte("12345")))
	if _, ok := content(t, f, "/a"); !ok {
		t.Fatal("no file")
	}
	for op, want := range map[Op]int{
		OpCreate: 1, OpWrite: 1, OpSync: 1, OpClose: 2, OpRename: 1, OpSyncDir: 1, OpOpen: 1, OpSize: 1, OpRead: 1, OpRemove: 0,
	} {
		if got := f.Count(op); got != want {
			t.Errorf("%v: %d, want %d", op, got, want)
		}
	}
	if f.Written() != 5 || f.Syncs() != 1 || f.Writes() != 1 || f.Reads() != 1 {
		t.Errorf("%d bytes written", f.Written())
	}
}

func TestInjectedCloseFailureCloses(t *testing.T) {
	f := NewFaults(New(1))
	file := create(t, f, "/a")
	f.Inject(Rule{Ops: []Op{OpClose}})
	if err := file.Close(); !errors.Is(err, ErrIO) {
		t.Errorf("got %v", err)
	}
	f.Clear()
	if err := file.Sync(); err == nil {
		t.Error("still open")
	}
}
