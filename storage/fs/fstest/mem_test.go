package fstest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/storage/fs"
)

func TestKillKeepsWhatWasWritten(t *testing.T) {
	m := New(1)
	check(t, m.Mkdir("/d"))
	file := create(t, m, "/d/a")
	write(t, file, 0, []byte("unsynced"))
	m = m.Kill()
	if b, ok := content(t, m, "/d/a"); !ok || string(b) != "unsynced" {
		t.Errorf("left %q, %v", b, ok)
	}
	// And it is no more durable than before.
	lost := 0
	for seed := range uint64(100) {
		if _, ok := content(t, m.Clone().Crash(seed), "/d/a"); !ok {
			lost++
		}
	}
	if lost == 0 {
		t.Error("a kill made it durable")
	}
}

func TestTheDeadCannotTouchTheLiving(t *testing.T) {
	for name, end := range map[string]func(*Mem) *Mem{
		"kill":  (*Mem).Kill,
		"crash": func(m *Mem) *Mem { return m.Crash(1) },
	} {
		m := New(1)
		check(t, fs.WriteDurable(m, "/a", []byte("x")))
		file, err := m.OpenWrite("/a")
		check(t, err)
		lock, err := m.Lock("/lock")
		check(t, err)
		next := end(m)

		_, werr := file.WriteAt([]byte("y"), 0)
		_, rerr := file.ReadAt(make([]byte, 1), 0)
		_, cerr := m.Create("/b")
		_, oerr := m.Open("/a")
		_, lerr := m.List("/")
		_, serr := m.Stat("/")
		for i, err := range []error{
			werr, rerr, cerr, oerr, lerr, serr, file.Sync(), file.Truncate(0), m.Remove("/a"), m.Rename("/a", "/b"),
			m.Mkdir("/d"), m.Mkdir("/"), m.SyncDir("/"),
		} {
			if !errors.Is(err, ErrDead) {
				t.Errorf("%s: call %d after death: %v", name, i, err)
			}
		}
		if b, _ := content(t, next, "/a"); string(b) != "x" {
			t.Errorf("%s: content %q", name, b)
		}
		held, err := next.Lock("/lock")
		check(t, err) // the lock died with its holder
		check(t, lock.Close())
		if _, err := next.Lock("/lock"); err == nil {
			t.Errorf("%s: the dead gave up a lock of the living", name)
		}
		check(t, held.Close())
	}
}

func TestCloneIsIndependent(t *testing.T) {
	m := New(1)
	file := create(t, m, "/a")
	write(t, file, 0, []byte("one"))
	copied := m.Clone()
	write(t, file, 0, []byte("two"))
	check(t, m.Remove("/a"))
	if b, _ := content(t, copied, "/a"); string(b) != "one" {
		t.Errorf("copy has %q", b)
	}
	// What was not durable is not durable in the copy either.
	seen := crashes(t, copied, func(disk *Mem) string {
		b, ok := content(t, disk, "/a")
		return fmt.Sprint(ok, len(b))
	})
	if seen["false 0"] == 0 || seen["true 0"] == 0 || seen["true 3"] == 0 {
		t.Errorf("seen %v", seen)
	}
}

func TestDamage(t *testing.T) {
	m := New(1)
	check(t, fs.WriteDurable(m, "/a", []byte("abcd")))
	check(t, m.FlipBit("/a", 8))
	check(t, m.Overwrite("/a", 3, []byte("x")))
	disk := m.Clone().Crash(1)
	for _, f := range []*Mem{m, disk} {
		if b, _ := content(t, f, "/a"); string(b) != "accx" {
			t.Errorf("content %q", b)
		}
	}
	check(t, m.Cut("/a", 2))
	if b, _ := content(t, m.Clone().Crash(2), "/a"); string(b) != "ac" {
		t.Errorf("cut to %q", b)
	}
	for _, err := range []error{m.FlipBit("/a", 16), m.FlipBit("/a", -1), m.Cut("/a", 3), m.FlipBit("/b", 0), m.Drop("/b")} {
		if err == nil {
			t.Error("damage to what is not there")
		}
	}
	closed(t, create(t, m, "/new"))
	check(t, m.Drop("/new"))
	check(t, m.Drop("/a"))
	wantSeen(t, crashes(t, m, func(disk *Mem) string {
		list, err := disk.List("/")
		check(t, err)
		return fmt.Sprint(list)
	}), "[]")
}

func TestConcurrentUse(t *testing.T) {
	m := New(1)
	shared := create(t, m, "/shared")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			own := create(t, m, fmt.Sprintf("/%d", i))
			for j := range 200 {
				b := bytes.Repeat([]byte{byte(i)}, 100)
				if _, err := own.WriteAt(b, int64(j*100)); err != nil {
					t.Error(err)
				}
				if _, err := shared.WriteAt(b, int64(j*100)); err != nil {
					t.Error(err)
				}
				if _, err := shared.ReadAt(b, 0); err != nil {
					t.Error(err)
				}
				if err := errors.Join(own.Sync(), m.SyncDir("/")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for seed := range uint64(20) {
		m.Clone().Crash(seed)
	}
	wg.Wait()
}

func BenchmarkAppendSync(b *testing.B) {
	b.ReportAllocs()
	m := New(1)
	file := create(b, m, "/a")
	batch := make([]byte, 200)
	for i := range b.N {
		write(b, file, int64(i%10000)*200, batch)
		check(b, file.Sync())
	}
}

func BenchmarkCrash(b *testing.B) {
	b.ReportAllocs()
	m := New(1)
	file := create(b, m, "/a")
	for i := range 2000 {
		write(b, file, int64(i)*200, make([]byte, 200))
	}
	for i := range b.N {
		m.Clone().Crash(uint64(i))
	}
}
