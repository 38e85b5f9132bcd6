package raft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func openAlone(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closeStore(t testing.TB, s store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func tenant(n int) model.Tenant {
	return model.Tenant{TenantID: fmt.Sprintf("t%06d", n), DisplayName: "tenant"}
}

func createTenants(t *testing.T, s store.Store, from, to int) {
	t.Helper()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for n := range next {
				if err := s.CreateTenant(context.Background(), tenant(n)); err != nil {
					t.Errorf("create tenant %d: %v", n, err)
				}
			}
		})
	}
	for n := from; n < to; n++ {
		next <- n
	}
	close(next)
	wg.Wait()
}

// checkTenants checks that exactly the tenants below n are there, and that the
// feed that led there is dense.
func checkTenants(t *testing.T, s store.Store, n int) {
	t.Helper()
	got, err := s.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != n {
		t.Fatalf("%d tenants, want %d", len(got), n)
	}
	for i, g := range got {
		if g != tenant(i) {
			t.Fatalf("tenant %d is %v", i, g)
		}
	}
	snapshot, err := s.TenantsSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.NextSeq != uint64(n) {
		t.Fatalf("next sequence %d, want %d", snapshot.NextSeq, n)
	}
}

func TestAloneComesBack(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		s := openAlone(t, Options{DataDir: dir, SnapshotEntries: 50, LogsKept: 20})
		checkTenants(t, s, i*100)
		createTenants(t, s, i*100, (i+1)*100)
		checkTenants(t, s, (i+1)*100)
		eventually(t, "the library has told what it applied", func() bool {
			st := s.Stats()
			return st.LastLogIndex == st.LastAppliedIndex && st.LastLogIndex > 100 && st.IsLeader
		})
		closeStore(t, s)
	}
	s := openAlone(t, Options{DataDir: dir})
	if st := s.Stats(); st.SnapshotIndex < 400 {
		t.Errorf("snapshot up to entry %d: the end did not make one", st.SnapshotIndex)
	}
}

func TestAloneHealth(t *testing.T) {
	s := openAlone(t, Options{DataDir: t.TempDir()})
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
	if !s.Durable() || s.Name() != "raft" {
		t.Errorf("durable %v, name %q", s.Durable(), s.Name())
	}
	closeStore(t, s)
	if err := s.Health(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("health of a closed store: %v", err)
	}
	if _, err := s.Tenants(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("read from a closed store: %v", err)
	}
	if err := s.CreateTenant(t.Context(), tenant(1)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("write to a closed store: %v", err)
	}
}

// What the directory lacks must be noticed: a store that starts with less than
// it acknowledged makes brokers believe that streams were deleted.
func TestDamagedDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openAlone(t, Options{DataDir: dir, LogsKept: 1})
	createTenants(t, s, 0, 100)
	closeStore(t, s)

	newest := func(dir string) string {
		list, err := filepath.Glob(filepath.Join(dir, snapshotsDir, "*", "state.bin"))
		if err != nil || len(list) == 0 {
			t.Fatalf("snapshots: %v, %v", list, err)
		}
		return list[len(list)-1]
	}
	cases := []struct {
		name   string
		damage func(dir string) error
	}{
		{"snapshot cut short", func(dir string) error { return os.Truncate(newest(dir), 40) }},
		{"snapshot empty", func(dir string) error { return os.Truncate(newest(dir), 0) }},
		{"byte of the snapshot changed", func(dir string) error { return flip(newest(dir), -20) }},
		{"meta data of the snapshot gone", func(dir string) error {
			return os.Remove(filepath.Join(filepath.Dir(newest(dir)), "meta.json"))
		}},
		{"snapshots gone", func(dir string) error { return os.RemoveAll(filepath.Join(dir, snapshotsDir)) }},
		{"log gone", func(dir string) error { return os.Remove(filepath.Join(dir, diskFile)) }},
		{"log empty", func(dir string) error { return os.Truncate(filepath.Join(dir, diskFile), 0) }},
		{"log cut short", func(dir string) error { return os.Truncate(filepath.Join(dir, diskFile), 10_000) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(work); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), Options{DataDir: work})
			if err == nil {
				left, _ := s.Tenants(t.Context())
				_ = s.Close()
				t.Fatalf("opened, with %d tenants of 100", len(left))
			}
			var damaged *DamagedError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "backup") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A damaged snapshot costs nothing while the log holds what was in it.
func TestDamagedSnapshotBesideAWholeLog(t *testing.T) {
	dir := t.TempDir()
	s := openAlone(t, Options{DataDir: dir, LogsKept: 10_000})
	createTenants(t, s, 0, 50)
	closeStore(t, s)
	s = openAlone(t, Options{DataDir: dir, LogsKept: 10_000})
	createTenants(t, s, 50, 100)
	closeStore(t, s)
	list, err := filepath.Glob(filepath.Join(dir, snapshotsDir, "*", "state.bin"))
	if err != nil || len(list) != 2 {
		t.Fatalf("snapshots: %v, %v", list, err)
	}
	if err := os.Truncate(list[1], 30); err != nil {
		t.Fatal(err)
	}
	s = openAlone(t, Options{DataDir: dir, LogsKept: 10_000})
	checkTenants(t, s, 100)
	createTenants(t, s, 100, 110)
	checkTenants(t, s, 110)
}

// flip changes one byte; a negative offset counts from the end.
func flip(path string, offset int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if offset < 0 {
		offset += len(b)
	}
	b[offset] ^= 0x40
	return os.WriteFile(path, b, 0o600)
}

func TestDirectoryOfAnotherOwner(t *testing.T) {
	dir := t.TempDir()
	s := openAlone(t, Options{DataDir: dir, ClusterID: "one"})
	if _, err := Open(t.Context(), Options{DataDir: dir, ClusterID: "one"}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v", err)
	}
	closeStore(t, s)
	for _, o := range []Options{
		{DataDir: dir, ClusterID: "two"},
		{DataDir: dir, ClusterID: "one", NodeID: 2},
	} {
		if s, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "belongs to") {
			t.Errorf("cluster %q, node %d: %v", o.ClusterID, o.NodeID, err)
			if s != nil {
				closeStore(t, s)
			}
		}
	}
}
