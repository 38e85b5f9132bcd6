package storage

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

// reopened is a store on what a killed process left.
func reopened(t *testing.T, m *fstest.Mem) (*Store, *fstest.Mem) {
	t.Helper()
	next := m.Kill()
	return open(t, next, nil), next
}

func uidPath(space Space, k Key) string {
	return filepath.Join(shardDir(testRoot, space, k), segment.UIDFile)
}

// A log is marked when it is first opened for a uid, and opened for no other
// afterwards; others serve on.
func TestLogBelongsToItsUID(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	for _, space := range Spaces() {
		appendRecords(t, mustOpen(t, s, space, key(0), LogOptions{UID: "first"}), 2, 10)
	}
	s, m = reopened(t, m)
	for _, space := range Spaces() {
		_, err := s.OpenLog(t.Context(), space, key(0), LogOptions{UID: "second"})
		var refused *IdentityError
		if !errors.As(err, &refused) || refused.Have != "first" || refused.Want != "second" || refused.Path != shardDir(testRoot, space, key(0)) {
			t.Fatalf("%s: %v", space.Kind(), err)
		}
		if !strings.Contains(err.Error(), refused.Path) || !strings.Contains(err.Error(), "move the directory away") {
			t.Errorf("nothing to act on: %v", err)
		}
	}
	mustOpen(t, s, Streams, key(1), LogOptions{UID: "second"})
	if log := mustOpen(t, s, Streams, key(0), LogOptions{UID: "first"}); log.Tail() != 2 {
		t.Errorf("tail %d", log.Tail())
	}
	// One that is open is no more given to another uid.
	var refused *IdentityError
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{UID: "second"}); !errors.As(err, &refused) {
		t.Errorf("an open log of another uid: %v", err)
	}
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{}); err != nil {
		t.Errorf("for nobody in particular: %v", err)
	}
	_ = m
}

// A log that nobody has marked is adopted, with what it holds.
func TestUnmarkedLogIsAdopted(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	appendRecords(t, mustOpen(t, s, Streams, key(0), LogOptions{}), 3, 10)
	if _, err := m.Stat(uidPath(Streams, key(0))); err == nil {
		t.Fatal("marked though nobody said whose it is")
	}
	s, m = reopened(t, m)
	if log := mustOpen(t, s, Streams, key(0), LogOptions{UID: "u"}); log.Tail() != 3 {
		t.Fatalf("tail %d", log.Tail())
	}
	s, _ = reopened(t, m)
	var refused *IdentityError
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{UID: "v"}); !errors.As(err, &refused) || refused.Have != "u" {
		t.Errorf("%v", err)
	}
}

// The mark is durable before the log takes its first record: after no power
// loss is there a record in a log of nobody.
func TestMarkComesBeforeTheLog(t *testing.T) {
	for seed := range uint64(25) {
		m := fstest.New(seed)
		s := open(t, m, nil)
		appendRecords(t, mustOpen(t, s, Streams, key(0), LogOptions{UID: "u"}), 1, 10)
		after := m.Crash(seed)
		s = open(t, after, nil)
		var refused *IdentityError
		if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{UID: "v"}); !errors.As(err, &refused) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// A damaged mark is not guessed at.
func TestDamagedMarkRefuses(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	appendRecords(t, mustOpen(t, s, Streams, key(0), LogOptions{UID: "u"}), 1, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := uidPath(Streams, key(0))
	if err := m.FlipBit(path, 80); err != nil {
		t.Fatal(err)
	}
	s = open(t, m, nil)
	var damaged *segment.CorruptionError
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{UID: "u"}); !errors.As(err, &damaged) || damaged.Path != path {
		t.Fatalf("%v", err)
	}
	if removed, err := s.Purge(t.Context(), streamTarget("s0", "u")); removed != 0 || err != nil {
		t.Errorf("purged %d of nobody knows whom, %v", removed, err)
	}
	reports := inspectAll(t, m, testRoot, InspectOptions{})
	if len(reports) != 1 || reports[0].Verdict != recovery.Refuse || reports[0].File != path {
		t.Errorf("%+v", reports)
	}
	// Where nobody says whose it is to be, the log is served all the same.
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{}); err != nil {
		t.Error(err)
	}
}

func TestInspectTellsUIDsAndNoTrash(t *testing.T) {
	m := fstest.New(1)
	s := open(t, m, nil)
	for i, uid := range []string{"a", "b", ""} {
		appendRecords(t, mustOpen(t, s, Streams, key(i), LogOptions{UID: uid}), 1, 10)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	faults := fstest.NewFaults(m)
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRemove}, Path: TrashDir})
	s = open(t, faults, nil)
	if removed, err := s.Purge(t.Context(), streamTarget("s1", "b")); removed != 1 || err != nil {
		t.Fatalf("%d, %v", removed, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, r := range inspectAll(t, m, testRoot, InspectOptions{}) {
		told = append(told, r.Label+" "+r.UID+" "+r.Verdict.String())
	}
	if want := []string{"acme/default/s0/0 a clean", "acme/default/s2/0  clean"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

func TestUIDsAreBounded(t *testing.T) {
	s := open(t, fstest.New(1), nil)
	long := strings.Repeat("x", segment.MaxUID+1)
	if _, err := s.OpenLog(t.Context(), Streams, key(0), LogOptions{UID: long}); err == nil {
		t.Error("a uid that no mark can hold")
	}
	if _, err := s.Purge(t.Context(), streamTarget("s0", long)); err == nil {
		t.Error("purged by it")
	}
	mustOpen(t, s, Streams, key(0), LogOptions{UID: long[1:]})
}
