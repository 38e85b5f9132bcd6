package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

func streamTarget(name, uid string) Target {
	return Target{Spaces: []Space{Streams, Groups, DeadLetters}, Tenant: "acme", Namespace: "default", Name: name, UID: uid}
}

// shardsOf makes logs of the shards of a stream, with what stands beside them.
func shardsOf(t *testing.T, s *Store, name, uid string, shards int) {
	t.Helper()
	for i := range shards {
		k := Key{Tenant: "acme", Namespace: "default", Name: name, Shard: uint32(i)}
		for _, space := range []Space{Streams, Groups, DeadLetters} {
			log := mustOpen(t, s, space, k, LogOptions{UID: uid})
			appendRecords(t, log, 2, 100)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func exists(m *fstest.Mem, space Space, name string, shard int) bool {
	_, err := m.Stat(shardDir(testRoot, space, Key{Tenant: "acme", Namespace: "default", Name: name, Shard: uint32(shard)}))
	return err == nil
}

func trashed(t *testing.T, m *fstest.Mem) int {
	t.Helper()
	names, err := m.List(filepath.Join(testRoot, TrashDir))
	if err != nil {
		return 0
	}
	return len(names)
}

// Exactly what belongs to the uid goes, in every space and of every shard.
func TestPurge(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	shardsOf(t, s, "orders", "a", 3)
	shardsOf(t, s, "orders2", "a", 1)
	other := Key{Tenant: "acme", Namespace: "default", Name: "orders", Shard: 7}
	if err := mustOpen(t, s, Streams, other, LogOptions{UID: "b"}).Close(); err != nil {
		t.Fatal(err)
	}
	nobody := Key{Tenant: "acme", Namespace: "default", Name: "orders", Shard: 8}
	if err := mustOpen(t, s, Groups, nobody, LogOptions{}).Close(); err != nil {
		t.Fatal(err)
	}
	cached := Key{Tenant: "acme", Namespace: "default", Name: "orders"}
	if err := mustOpen(t, s, Caches, cached, LogOptions{UID: "a"}).Close(); err != nil {
		t.Fatal(err)
	}
	removed, err := s.Purge(t.Context(), streamTarget("orders", "a"))
	if err != nil || removed != 3 {
		t.Fatalf("removed %d, %v", removed, err)
	}
	for i := range 3 {
		for _, space := range []Space{Streams, Groups, DeadLetters} {
			if exists(m, space, "orders", i) {
				t.Errorf("%s of shard %d is there", space.Kind(), i)
			}
		}
	}
	if !exists(m, Streams, "orders2", 0) || !exists(m, Streams, "orders", 7) || !exists(m, Groups, "orders", 8) || !exists(m, Caches, "orders", 0) {
		t.Error("removed what was another's")
	}
	if n := trashed(t, m); n != 0 {
		t.Errorf("%d logs in the trash", n)
	}
	if removed, err = s.Purge(t.Context(), streamTarget("orders", "a")); removed != 0 || err != nil {
		t.Errorf("again: %d, %v", removed, err)
	}
	// The name is free for another.
	log := mustOpen(t, s, Streams, Key{Tenant: "acme", Namespace: "default", Name: "orders"}, LogOptions{UID: "c"})
	if log.Tail() != 0 {
		t.Errorf("a new log begins at %d", log.Tail())
	}
}

func TestPurgeNeedsAUID(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	shardsOf(t, s, "orders", "", 1)
	if _, err := s.Purge(t.Context(), streamTarget("orders", "")); err == nil {
		t.Error("purged what nothing names")
	}
	if !exists(m, Streams, "orders", 0) {
		t.Error("it is gone")
	}
}

// Names that read alike in a directory's name are not the same.
func TestPurgeReadsWholeNames(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	shardsOf(t, s, "a+b", "u", 1)
	shardsOf(t, s, "a_b", "u", 1)
	if removed, err := s.Purge(t.Context(), streamTarget("a_b", "u")); removed != 1 || err != nil {
		t.Fatalf("%d, %v", removed, err)
	}
	if !exists(m, Streams, "a+b", 0) || exists(m, Streams, "a_b", 0) {
		t.Error("the wrong one is gone")
	}
}

// A log that is open is not taken away from under its users.
func TestPurgeOfAnOpenLog(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	log := mustOpen(t, s, Streams, key(0), LogOptions{UID: "u"})
	var used *InUseError
	if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); !errors.As(err, &used) || removed != 0 {
		t.Fatalf("%d, %v", removed, err)
	}
	appendRecords(t, log, 1, 10)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); removed != 1 || err != nil {
		t.Fatalf("%d, %v", removed, err)
	}
}

// Who asks for a log while it is being removed gets the one that comes after.
func TestOpenDuringPurge(t *testing.T) {
	m := fstest.New(1)
	faults := fstest.NewFaults(m)
	s := open(t, faults, nil)
	shardsOf(t, s, "s0", "u", 1)
	gate := faults.Block(fstest.OpRename, TrashDir)
	purged := make(chan error)
	go func() {
		_, err := s.Purge(context.Background(), streamTarget("s0", "u"))
		purged <- err
	}()
	<-gate.Arrived()
	opened := make(chan *shardlog.Log)
	go func() {
		log, err := s.OpenLog(context.Background(), Streams, key(0), LogOptions{UID: "v"})
		if err != nil {
			t.Error(err)
		}
		opened <- log
	}()
	gate.Open()
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	if log := <-opened; log != nil && log.Tail() != 0 {
		t.Errorf("the new log holds %d records", log.Tail())
	}
}

// What could not be deleted is out of service and deleted by the next start.
func TestTrashIsEmptiedAtTheStart(t *testing.T) {
	m := fstest.New(1)
	faults := fstest.NewFaults(m)
	s := open(t, faults, nil)
	shardsOf(t, s, "s0", "u", 2)
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRemove}, Path: TrashDir})
	if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); removed != 2 || err != nil {
		t.Fatalf("%d, %v", removed, err)
	}
	if n := trashed(t, m); n != 6 || exists(m, Streams, "s0", 0) {
		t.Fatalf("%d logs in the trash", n)
	}
	shardsOf(t, s, "s0", "u", 2) // and once more: names in the trash do not clash
	if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); removed != 2 || err != nil {
		t.Fatalf("%d, %v", removed, err)
	}
	_, next := reopened(t, m)
	within(t, "the trash is empty", func() bool { return trashed(t, next) == 0 })
}

// Each failure of the file system leaves every log whole, in its place or in
// the trash, and repeating the removal finishes it.
func TestPurgeWithFailures(t *testing.T) {
	for n := 1; ; n++ {
		m := fstest.New(uint64(n))
		faults := fstest.NewFaults(m)
		s := open(t, faults, nil)
		shardsOf(t, s, "s0", "u", 2)
		shardsOf(t, s, "s1", "u", 1)
		before := faults.Inject(fstest.Rule{Skip: n - 1, Times: 1})
		_, err := s.Purge(t.Context(), streamTarget("s0", "u"))
		if before.Hits() == 0 {
			if n < 20 {
				t.Fatalf("a removal took %d calls", n)
			}
			return
		}
		before.Stop()
		for _, r := range inspectAll(t, m, testRoot, InspectOptions{}) {
			if r.Verdict.String() != "clean" {
				t.Fatalf("call %d failed (%v): %s of %s is %s: %s", n, err, r.Kind, r.Label, r.Verdict, r.Error)
			}
		}
		if _, err := s.Purge(t.Context(), streamTarget("s0", "u")); err != nil {
			t.Fatalf("call %d failed, then again: %v", n, err)
		}
		if exists(m, Streams, "s0", 0) || exists(m, Groups, "s0", 1) || !exists(m, Streams, "s1", 0) {
			t.Fatalf("call %d failed: not all is removed, or too much", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, next := reopened(t, m)
		within(t, "the trash is empty", func() bool { return trashed(t, next) == 0 })
		_ = s.Close()
	}
}

// callsOfPurge counts what the purge of TestPurgeAndPowerLoss asks of its file
// system.
func callsOfPurge(t *testing.T) int {
	faults := fstest.NewFaults(fstest.New(1))
	s := open(t, faults, nil)
	shardsOf(t, s, "s0", "u", 2)
	calls := func() (n int) {
		for op := fstest.OpCreate; op <= fstest.OpClose; op++ {
			n += faults.Count(op)
		}
		return n
	}
	before := calls()
	if _, err := s.Purge(t.Context(), streamTarget("s0", "u")); err != nil {
		t.Fatal(err)
	}
	return calls() - before
}

// A purge is cut off by a power loss at any call. No log is half removed in its
// place, and none of another uid or name is touched; repeating it finishes.
func TestPurgeAndPowerLoss(t *testing.T) {
	total := callsOfPurge(t)
	for seed := range uint64(80 * soak.Times()) {
		m := fstest.New(seed)
		faults := fstest.NewFaults(m)
		s := open(t, faults, nil)
		shardsOf(t, s, "s0", "u", 2)
		shardsOf(t, s, "s1", "u", 1)
		keep := Key{Tenant: "acme", Namespace: "default", Name: "s0", Shard: 5}
		appendRecords(t, mustOpen(t, s, Streams, keep, LogOptions{UID: "w"}), 4, 10)
		gate := fstest.NewGate()
		faults.Inject(fstest.Rule{Skip: int(seed*37) % total, Times: 1, Gate: gate})
		done := make(chan error, 1)
		ended := false
		go func() {
			_, err := s.Purge(context.Background(), streamTarget("s0", "u"))
			done <- err
		}()
		select {
		case <-gate.Arrived():
		case err := <-done:
			if ended = true; err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		after := m.Crash(seed)
		gate.Open()
		if !ended {
			<-done // on a dead disk
		}
		s = open(t, after, nil)
		for i := range 2 {
			k := Key{Tenant: "acme", Namespace: "default", Name: "s0", Shard: uint32(i)}
			for _, space := range []Space{Streams, Groups, DeadLetters} {
				if _, err := after.Stat(filepath.Join(shardDir(testRoot, space, k), segment.IdentityFile)); err != nil {
					continue // gone
				}
				if ended {
					t.Fatalf("seed %d: %s of shard %d came back", seed, space.Kind(), i)
				}
				log, err := s.OpenLog(t.Context(), space, k, LogOptions{UID: "u"})
				if err != nil {
					t.Fatalf("seed %d: %s of shard %d: %v", seed, space.Kind(), i, err)
				}
				if log.Tail() != 2 {
					t.Fatalf("seed %d: %s of shard %d ends at %d", seed, space.Kind(), i, log.Tail())
				}
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if log := mustOpen(t, s, Streams, keep, LogOptions{UID: "w"}); log.Tail() != 4 {
			t.Fatalf("seed %d: a log of another uid ends at %d", seed, log.Tail())
		}
		if log := mustOpen(t, s, Streams, key(1), LogOptions{UID: "u"}); log.Tail() != 2 {
			t.Fatalf("seed %d: a log of another name ends at %d", seed, log.Tail())
		}
		if _, err := s.Purge(t.Context(), streamTarget("s0", "u")); err != nil {
			t.Fatalf("seed %d: again: %v", seed, err)
		}
		if exists(after, Streams, "s0", 0) || exists(after, DeadLetters, "s0", 1) {
			t.Fatalf("seed %d: purged and there", seed)
		}
		_ = s.Close()
	}
}

// What the commit journal has of a removed log is not written into one of the
// same name made later.
func TestJournalForgetsPurgedLogs(t *testing.T) {
	for seed := range uint64(15) {
		m := fstest.New(seed)
		s := open(t, m, nil)
		beside := mustOpen(t, s, Streams, key(1), LogOptions{UID: "x"})
		log := mustOpen(t, s, Streams, key(0), LogOptions{UID: "u"})
		appendRecords(t, log, 1, 1) // makes the header durable: from here on it goes through the journal
		for i := range 20 {
			if _, err := log.AppendWait(numbered([]string{fmt.Sprintf("old %d", i)})); err != nil {
				t.Fatal(err)
			}
			appendRecords(t, beside, 1, 10)
		}
		if s.JournalStats().Rounds == 0 {
			t.Fatal("the journal was not used")
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); removed != 1 || err != nil {
			t.Fatalf("%d, %v", removed, err)
		}
		log = mustOpen(t, s, Streams, key(0), LogOptions{UID: "v"})
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprintf("new %d", i))
			if _, err := log.AppendWait(numbered(want[i:])); err != nil {
				t.Fatal(err)
			}
		}
		s = open(t, m.Crash(seed), nil)
		log = mustOpen(t, s, Streams, key(0), LogOptions{UID: "v"})
		if got := readAll(t, log); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}
