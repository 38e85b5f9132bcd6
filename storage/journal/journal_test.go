package journal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// Sixty-four logs commit at once: while one sync is under way all others
// gather, and one more makes them all durable.
func TestLogsShareASync(t *testing.T) {
	faults := fstest.NewFaults(newDisk(1))
	j := open(t, faults, Options{})
	logs := make([]*fakeLog, 64)
	for i := range logs {
		logs[i] = makeLog(t, faults, j, logName(i))
	}
	before := faults.Syncs()
	gate := faults.Block(fstest.OpSync, ".journal")
	var group sync.WaitGroup
	for _, l := range logs {
		group.Go(func() {
			if err := l.commit(500); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all but the first gather", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.gather.members) == len(logs)-1
	})
	gate.Open()
	group.Wait()
	if got := faults.Syncs() - before; got != 2 {
		t.Errorf("%d syncs for 64 commits at once, want 2", got)
	}
	if s := j.Stats(); s.Rounds != 2 || s.Entries != 64 {
		t.Errorf("stats %+v", s)
	}
	for _, l := range logs {
		if l.direct > 0 {
			t.Errorf("%s had to sync for itself", l.name)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestALargeRoundIsLeftToItsLog(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{MaxBytes: 100})
	l := makeLog(t, disk, j, logName(0))
	if err := l.commit(101); err != nil || l.direct != 1 {
		t.Errorf("%d direct commits, %v", l.direct, err)
	}
	if err := l.commit(100); err != nil || l.direct != 1 {
		t.Errorf("%d direct commits, %v", l.direct, err)
	}
}

// A log whose own sync hangs keeps its file of the journal from being written
// over. The others go on, with syncs of their own once the other is full, too.
func TestAStuckLogStopsNobody(t *testing.T) {
	faults := fstest.NewFaults(newDisk(1))
	j := open(t, faults, Options{FileBytes: 4 * alignment})
	stuck, other := makeLog(t, faults, j, logName(0)), makeLog(t, faults, j, logName(1))
	if err := stuck.commit(10); err != nil {
		t.Fatal(err)
	}
	gate := faults.Block(fstest.OpSync, stuck.name)
	for range 40 {
		if err := other.commit(10); err != nil {
			t.Fatal(err)
		}
	}
	if other.direct == 0 || j.Stats().Busy == 0 {
		t.Error("the journal wrote over what a stuck log still needs")
	}
	gate.Open()
	eventually(t, "the journal is used again", func() bool {
		before := other.direct
		if err := other.commit(10); err != nil {
			t.Fatal(err)
		}
		return other.direct == before
	})
}

// What a log could not sync itself stays in the journal for the next start.
func TestAFailedLogKeepsItsRounds(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{FileBytes: 2 * alignment})
	bad, other := makeLog(t, disk, j, logName(0)), makeLog(t, disk, j, logName(1))
	if err := bad.commit(300); err != nil {
		t.Fatal(err)
	}
	bad.broken = errors.New("broken")
	for range 20 {
		if err := other.commit(10); err != nil {
			t.Fatal(err)
		}
	}
	j.checkpoints.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		after := disk.Crash(seed)
		open(t, after, Options{})
		if got := content(t, after, bad.name); !bytes.Equal(got, bad.pattern(0, 300)) {
			t.Fatalf("seed %d: %d bytes, want 300", seed, len(got))
		}
	}
}

// A failing journal loses nothing: logs sync for themselves from then on, or
// while the disk is full.
func TestAFailingJournalLosesNothing(t *testing.T) {
	for name, fail := range map[string]func(*fstest.Faults){
		"write": func(f *fstest.Faults) { f.FailWrite(".journal", 1, syscall.EIO) },
		"full":  func(f *fstest.Faults) { f.FailWrite(".journal", 2, syscall.ENOSPC) },
		"sync":  func(f *fstest.Faults) { f.FailSync(".journal", 1) },
	} {
		direct, failures := 5, uint64(1)
		if name == "full" {
			direct, failures = 2, 0
		}
		t.Run(name, func(t *testing.T) {
			disk := newDisk(1)
			faults := fstest.NewFaults(disk)
			j := open(t, faults, Options{})
			l := makeLog(t, faults, j, logName(0))
			if err := l.commit(50); err != nil || l.direct != 0 {
				t.Fatal(err, l.direct)
			}
			fail(faults)
			for range 5 {
				if err := l.commit(50); err != nil {
					t.Fatal(err)
				}
			}
			if l.direct != direct || j.Stats().Failures != failures {
				t.Errorf("%d direct commits, stats %+v", l.direct, j.Stats())
			}
			for seed := range uint64(20) {
				after := disk.Crash(seed)
				open(t, after, Options{})
				if got := content(t, after, l.name); !bytes.Equal(got, l.pattern(0, 300)) {
					t.Fatalf("seed %d: %d bytes, want 300", seed, len(got))
				}
			}
		})
	}
}

// Any bit flipped in a round that has another behind it is seen, and nothing
// is changed by an open that refuses.
func TestDamageIsNotTakenForATornEnd(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	l := makeLog(t, disk, j, logName(0))
	for range 3 {
		if err := l.commit(60); err != nil {
			t.Fatal(err)
		}
	}
	path := Dir(root) + "/" + fileName(0)
	for _, at := range []int64{0, 5, 9, 20, 26, 40, 70, alignment, alignment + 30, alignment + 80} {
		for bit := range int64(8) {
			damaged := disk.Clone()
			if err := damaged.FlipBit(path, 8*at+bit); err != nil {
				t.Fatal(err)
			}
			before, err := fs.ReadFile(damaged, path, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(damaged, root, Options{})
			var damage *DamagedError
			if !errors.As(err, &damage) || damage.Path != path || !strings.Contains(err.Error(), "move the directory") {
				t.Fatalf("byte %d, bit %d: %v", at, bit, err)
			}
			after, err := fs.ReadFile(damaged, path, 1<<30)
			if err != nil || !bytes.Equal(before, after) {
				t.Fatalf("byte %d, bit %d: a refused open changed the journal (%v)", at, bit, err)
			}
		}
	}
}

func TestADamagedListOfVoidsIsRefused(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	l := makeLog(t, disk, j, logName(0))
	if err := l.commit(60); err != nil {
		t.Fatal(err)
	}
	if err := l.cut(); err != nil {
		t.Fatal(err)
	}
	path := Dir(root) + "/" + voidsFile
	info, err := disk.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * info.Size {
		damaged := disk.Clone()
		if err := damaged.FlipBit(path, bit); err != nil {
			t.Fatal(err)
		}
		var damage *DamagedError
		if _, err := Open(damaged, root, Options{}); !errors.As(err, &damage) || damage.Path != path {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
}

// Committing allocates nothing once buffers have their size.
func TestCommitAllocNothing(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(fs.OS(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	m := j.Join("x", nopLog{})
	b := make([]byte, 200)
	m.Commit(0, 0, b)
	if got := testing.AllocsPerRun(50, func() { m.Commit(0, 0, b) }); got > 0 {
		t.Errorf("%v allocations a commit", got)
	}
}

type nopLog struct{}

func (nopLog) SyncFiles() error { return nil }

// A directory of the journal that no writer made is refused or read as far as
// it goes; it never makes a log longer than its bytes, nor leaves the root.
func FuzzOpen(f *testing.F) {
	disk := newDisk(1)
	j := open(f, disk, Options{FileBytes: 3 * alignment})
	l := makeLog(f, disk, j, logName(0))
	for range 5 {
		if err := l.commit(90); err != nil {
			f.Fatal(err)
		}
	}
	for n := range 2 {
		b, err := fs.ReadFile(disk, Dir(root)+"/"+fileName(n), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{}, []byte{})
		f.Add([]byte{}, b, voids{"x": 3}.append(nil))
	}
	f.Fuzz(func(t *testing.T, zero, one, list []byte) {
		disk := newDisk(1)
		if err := fs.MkdirDurable(disk, Dir(root)); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{fileName(0): zero, fileName(1): one, voidsFile: list} {
			if name == voidsFile && len(b) == 0 {
				continue
			}
			file, err := disk.Create(Dir(root) + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		j, err := Open(disk, root, Options{})
		if err != nil {
			return
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := disk.List("/")
		if err != nil || len(names) != 1 {
			t.Fatalf("outside the store: %v, %v", names, err)
		}
	})
}
