package recovery

import (
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// sideFiles are written beside a log, with what a plan says of them.
var sideFiles = map[string][]byte{
	segment.ReplicaFile:  segment.Replica{Generation: 3, CommitOffset: 100}.Append(nil),
	segment.BallotFile:   segment.Ballot{Generation: 3, Leader: "node-a"}.Append(nil),
	segment.IdentityFile: segment.Identity{Tenant: "acme", Namespace: "default", Name: "orders", Shard: 4}.Append(nil),
	segment.EpochsFile:   segment.Generations{{Number: 1}, {Number: 3, Start: 60}}.Append(nil),
}

func withSideFiles(t *testing.T) (*fstest.Mem, *testWriter) {
	m := fstest.New(1)
	w := threeSegments(t, m)
	for name, data := range sideFiles {
		w.must(fs.WriteDurable(m, w.path(name), data))
	}
	return m, w
}

func TestSideFilesAreRead(t *testing.T) {
	m, _ := withSideFiles(t)
	p := recovered(t, m, Options{})
	if p.Replica.Generation != 3 || p.Replica.CommitOffset != 100 || p.Ballot.Leader != "node-a" || len(p.Generations) != 2 ||
		!p.HasIdentity || p.Identity.Name != "orders" || len(p.Warnings) > 0 {
		t.Errorf("%+v", p)
	}
	m = fstest.New(1)
	threeSegments(t, m)
	if p := recovered(t, m, Options{}); p.Replica != (segment.Replica{}) || p.Ballot != (segment.Ballot{}) || p.HasIdentity || len(p.Generations) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestPromisesMustDecode: replica, ballot and identity are refused where they
// exist and do not decode; the others are done without, and said so.
func TestPromisesMustDecode(t *testing.T) {
	for name, data := range sideFiles {
		harms := map[string]func(*fstest.Mem, string) error{
			"empty":    func(m *fstest.Mem, path string) error { return m.Cut(path, 0) },
			"cut":      func(m *fstest.Mem, path string) error { return m.Cut(path, int64(len(data)-1)) },
			"flipped":  func(m *fstest.Mem, path string) error { return m.FlipBit(path, int64(len(data)*4)) },
			"longer":   func(m *fstest.Mem, path string) error { return m.Overwrite(path, int64(len(data)), []byte{0}) },
			"too long": func(m *fstest.Mem, path string) error { return m.Overwrite(path, segment.MaxSideFile, []byte{1}) },
		}
		for what, harm := range harms {
			m, w := withSideFiles(t)
			path := w.path(name)
			w.must(harm(m, path))
			p := inspect(t, m, Options{})
			if name == segment.EpochsFile {
				if p.Verdict != Clean || len(p.Generations) > 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], name) {
					t.Errorf("%s %s: %s, warnings %q", name, what, p.Verdict, p.Warnings)
				}
				continue
			}
			if p.Verdict != Refuse || corruption(p.Err).Path != path {
				t.Errorf("%s %s: %s, %v", name, what, p.Verdict, p.Err)
			}
		}
	}
}

// TestGenerationsPastTheTailGo: they were written before the batches that power
// loss took.
func TestGenerationsPastTheTailGo(t *testing.T) {
	for _, test := range []struct{ start, kept uint64 }{{20, 2}, {21, 1}} {
		m, w := tailLog(t, 5, 0)
		w.must(fs.WriteDurable(m, w.path(segment.EpochsFile), segment.Generations{{Number: 1}, {Number: 2, Start: test.start}}.Append(nil)))
		p := recovered(t, m, Options{})
		if len(p.Generations) != int(test.kept) {
			t.Errorf("start %d: %v", test.start, p.Generations)
		}
		data, err := fs.ReadFile(m, w.path(segment.EpochsFile), 1<<20)
		w.must(err)
		if g, err := segment.ParseGenerations(data); err != nil || !slices.Equal(g, p.Generations) {
			t.Errorf("start %d: on disk %v, %v", test.start, g, err)
		}
	}
}
