package storage

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

func inspectAll(t *testing.T, f fs.FS, root string, o InspectOptions) []ShardReport {
	t.Helper()
	var out []ShardReport
	if err := InspectDir(f, root, o, func(r ShardReport) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// inspectedStore is a store with a shard of every verdict.
func inspectedStore(t *testing.T) (*fstest.Mem, string) {
	t.Helper()
	m := fstest.New(1)
	s := open(t, m, nil)
	for i := range 3 {
		log := mustOpen(t, s, Streams, key(i), LogOptions{})
		for range 6 {
			appendRecords(t, log, 2, 500)
		}
	}
	appendRecords(t, mustOpen(t, s, Groups, key(0), LogOptions{}), 1, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := damage(t, m, Streams, key(2))
	newest := filepath.Join(shardDir(testRoot, Streams, key(1)), segment.FileName(1))
	info, err := m.Stat(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Overwrite(newest, info.Size, []byte("half a batch")); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirDurable(m, filepath.Join(testRoot, "lost+found")); err != nil {
		t.Fatal(err)
	}
	return m, path
}

func TestInspectDir(t *testing.T) {
	m, path := inspectedStore(t)
	faults := fstest.NewFaults(m)
	got := inspectAll(t, faults, testRoot, InspectOptions{Options: recovery.Options{VerifyAll: true}})
	var told []string
	for _, r := range got {
		told = append(told, r.Kind+" "+r.Label+" "+r.Verdict.String())
	}
	want := []string{
		"stream acme/default/s0/0 clean", "stream acme/default/s1/0 repair", "stream acme/default/s2/0 refuse", "groups acme/default/s0/0 clean",
	}
	if !slices.Equal(told, want) {
		t.Fatalf("%q", told)
	}
	if r := got[0]; r.Base != 0 || r.Tail != 12 || len(r.Segments) != 2 || r.Bytes == 0 || len(r.Steps) > 2 {
		t.Errorf("%+v", r)
	}
	if r := got[1]; r.Tail != 12 || r.CutBytes != int64(len("half a batch")) || !strings.Contains(strings.Join(r.Steps, "\n"), "cut segment 1") {
		t.Errorf("%+v", r)
	}
	if r := got[2]; r.File != path || r.Position == nil || *r.Position != segment.HeaderSize || r.Corruption != "batch checksum" || !strings.Contains(r.Error, path) {
		t.Errorf("%+v", r)
	}
	for _, op := range []fstest.Op{fstest.OpCreate, fstest.OpOpenWrite, fstest.OpWrite, fstest.OpRemove, fstest.OpRename, fstest.OpTruncate, fstest.OpSync, fstest.OpLock, fstest.OpMkdir} {
		if n := faults.Count(op); n > 0 {
			t.Errorf("%d times %s: an inspection only reads", n, op)
		}
	}
	line, err := json.Marshal(got[2])
	if err != nil || !strings.Contains(string(line), `"kind":"stream","shard":"acme/default/s2/0"`) || !strings.Contains(string(line), `"verdict":"refuse"`) {
		t.Errorf("%s, %v", line, err)
	}
}

// TestInspectAgreesWithOpen: what is told is what opening does.
func TestInspectAgreesWithOpen(t *testing.T) {
	m, _ := inspectedStore(t)
	s := open(t, m, func(c *Config) { c.Log.VerifyAll = true })
	for _, r := range inspectAll(t, m, testRoot, InspectOptions{Spaces: []Space{Streams}, Options: recovery.Options{VerifyAll: true}}) {
		k, err := ParseKey(r.Label)
		if err != nil {
			t.Fatal(err)
		}
		log, err := s.OpenLog(t.Context(), Streams, k, LogOptions{})
		if refused := r.Verdict == recovery.Refuse; refused != (err != nil) {
			t.Errorf("%s: %s, opened with %v", r.Label, r.Verdict, err)
			continue
		}
		if err == nil && (log.Base() != r.Base || log.Tail() != r.Tail) {
			t.Errorf("%s: told [%d, %d), opened [%d, %d)", r.Label, r.Base, r.Tail, log.Base(), log.Tail())
		}
	}
}

func TestInspectOneShard(t *testing.T) {
	m, _ := inspectedStore(t)
	k := key(0)
	got := inspectAll(t, m, testRoot, InspectOptions{Shard: &k})
	if len(got) != 2 || got[0].Kind != "stream" || got[1].Kind != "groups" {
		t.Errorf("%+v", got)
	}
	got = inspectAll(t, m, testRoot, InspectOptions{Shard: &k, Spaces: []Space{Groups}})
	if len(got) != 1 || got[0].Kind != "groups" {
		t.Errorf("%+v", got)
	}
	got = inspectAll(t, m, shardDir(testRoot, Groups, k), InspectOptions{})
	if len(got) != 1 || got[0].Kind != "groups" || got[0].Label != k.String() {
		t.Errorf("%+v", got)
	}
	if err := InspectDir(m, "nowhere", InspectOptions{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestInspectMisplacedShard(t *testing.T) {
	m, _ := inspectedStore(t)
	path := filepath.Join(shardDir(testRoot, Streams, key(0)), segment.IdentityFile)
	if err := fs.WriteDurable(m, path, slotKey{Streams, key(9)}.identity().Append(nil)); err != nil {
		t.Fatal(err)
	}
	k := key(0)
	got := inspectAll(t, m, testRoot, InspectOptions{Shard: &k, Spaces: []Space{Streams}})
	if len(got) != 1 || got[0].Verdict != recovery.Refuse || got[0].File != path || !strings.Contains(got[0].Error, "s9") {
		t.Errorf("%+v", got)
	}
}

func TestInspectUnreadableShard(t *testing.T) {
	m, _ := inspectedStore(t)
	faults := fstest.NewFaults(m)
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRead}, Path: DirName(key(0))})
	got := inspectAll(t, faults, testRoot, InspectOptions{})
	if len(got) != 4 || got[0].Verdict != recovery.Refuse || got[0].Error == "" || got[1].Verdict != recovery.Repair {
		t.Errorf("%+v", got)
	}
}

func TestParseKey(t *testing.T) {
	k, err := ParseKey("acme/default/orders/3")
	if err != nil || k != (Key{"acme", "default", "orders", 3}) || k.String() != "acme/default/orders/3" {
		t.Errorf("%v, %v", k, err)
	}
	for _, bad := range []string{"", "orders", "a/b/c", "a/b/c/d", "a/b/c/-1", "a/b/c/4294967296", "a/b/c/1/2"} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}
