package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	hraft "github.com/hashicorp/raft"
	bolt "go.etcd.io/bbolt"
)

func open1(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	return s
}

func entries(from, to uint64) []*hraft.Log {
	var logs []*hraft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, &hraft.Log{
			Index: i, Term: i / 10, Type: hraft.LogType(i % 3), Data: bytes.Repeat([]byte{byte(i)}, int(i%500)),
			Extensions: bytes.Repeat([]byte("x"), int(i%2)), AppendedAt: time.Unix(int64(i), 5),
		})
	}
	return logs
}

func checkRange(t *testing.T, s *Store, first, last uint64) {
	t.Helper()
	f, _ := s.FirstIndex()
	l, _ := s.LastIndex()
	if f != first || l != last {
		t.Fatalf("log from %d to %d, want %d to %d", f, l, first, last)
	}
	for i, want := range entries(first, last) {
		if first == 0 {
			break
		}
		var got hraft.Log
		if err := s.GetLog(first+uint64(i), &got); err != nil {
			t.Fatal(err)
		}
		if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) ||
			!bytes.Equal(got.Extensions, want.Extensions) || !got.AppendedAt.Equal(want.AppendedAt) {
			t.Fatalf("entry %d is %+v, want %+v", i, got, want)
		}
	}
	var l2 hraft.Log
	for _, i := range []uint64{first - 1, last + 1} {
		if err := s.GetLog(i, &l2); !errors.Is(err, hraft.ErrLogNotFound) {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s := open1(t, path)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// Each step is checked in place and after reopening.
	steps := []struct {
		do          func() error
		first, last uint64
	}{
		{func() error { return nil }, 0, 0},
		{func() error { return s.StoreLogs(entries(1, 2000)) }, 1, 2000},
		{func() error { return s.StoreLog(entries(2001, 2001)[0]) }, 1, 2001},
		{func() error { return s.DeleteRange(1, 1500) }, 1501, 2001},
		{func() error { return s.DeleteRange(1990, 2001) }, 1501, 1989},
		{func() error { return s.StoreLogs(entries(1990, 1995)) }, 1501, 1995},
		{func() error { return s.DeleteRange(1, 1400) }, 1501, 1995},
		{func() error { return s.DeleteRange(1, 1995) }, 0, 0},
		{func() error { return s.StoreLogs(entries(5000, 5010)) }, 5000, 5010},
	}
	for _, step := range steps {
		do(step.do())
		checkRange(t, s, step.first, step.last)
		do(s.Close())
		s = open1(t, path)
		checkRange(t, s, step.first, step.last)
	}
	if err := s.StoreLogs(entries(5012, 5013)); err == nil {
		t.Error("a gap was stored")
	}
	if err := s.DeleteRange(5003, 5004); err == nil {
		t.Error("a hole was cut")
	}
	checkRange(t, s, 5000, 5010)
}

func TestCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s := open1(t, path)
	if err := s.StoreLogs(entries(1, 10)); err != nil {
		t.Fatal(err)
	}
	s.StageCommitted(7)
	s.StageCommitted(5)
	if c := s.Committed(); c != 7 {
		t.Errorf("committed %d, want 7", c)
	}
	if err := s.StoreLogs(entries(11, 12)); err != nil {
		t.Fatal(err)
	}
	s.StageCommitted(9) // reaches the disk at the end only
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	s = open1(t, path)
	if c := s.Committed(); c != 7 {
		t.Errorf("committed %d after a crash, want 7", c)
	}
	s.StageCommitted(1000)
	if c := s.Committed(); c != 12 {
		t.Errorf("committed %d, beyond the log", c)
	}
}

func TestMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s := open1(t, path)
	for _, want := range []Marks{{"", 0, false, 0}, {"c", 3, true, 40}, {"c", 3, false, 40}} {
		if want.NodeID != 0 {
			if err := errors.Join(s.Mark(want.ClusterID, want.NodeID, want.Withheld), s.MarkSnapshot(want.Snapshot), s.MarkSnapshot(7)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open1(t, path)
		if got, err := s.Marks(); err != nil || got != want {
			t.Errorf("marks %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	open1(t, path)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
}

// Whatever happens to the file, what is served from it is what was stored, or
// opening it fails. A page that nothing uses may change unnoticed.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "raft.db")
	s := open1(t, path)
	if err := s.StoreLogs(entries(1, 300)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	refused, tries := 0, 0
	try := func(name string, b []byte) {
		tries++
		work := filepath.Join(dir, fmt.Sprintf("work%d.db", tries))
		if err := os.WriteFile(work, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(work, Options{NoSync: true})
		if err != nil {
			var damaged *DamagedError
			if !errors.As(err, &damaged) {
				t.Errorf("%s: %v", name, err)
			}
			refused++
			return
		}
		defer func() { _ = s.db.Close() }()
		checkRange(t, s, 1, 300)
	}
	for at := 100; at < used; at += used / 60 {
		b := bytes.Clone(whole[:used+4096-used%4096])
		for i := at; i < min(at+64, len(b)); i++ {
			b[i] ^= 0x5a
		}
		try(fmt.Sprintf("64 bytes changed at %d", at), b)
	}
	for _, size := range []int{0, 1, 4096, 8192, 20_000} {
		try(fmt.Sprintf("cut to %d bytes", size), whole[:size])
	}
	if refused < 10 {
		t.Errorf("only %d of %d damages were seen", refused, tries)
	}
}

// A file without its buckets was made by nobody.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := Open(path, Options{}); !errors.As(err, &damaged) {
		t.Errorf("%v", err)
	}
}
