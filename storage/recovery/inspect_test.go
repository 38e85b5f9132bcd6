package recovery

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

func TestCleanLog(t *testing.T) {
	m := fstest.New(1)
	w := threeSegments(t, m)
	for _, o := range []Options{{}, {VerifyAll: true}, {RepairChecksumTail: true}} {
		p := inspect(t, m, o)
		if p.Verdict != Clean || len(p.Steps) > 0 || p.Base != 0 || p.Tail != 120 || p.LastCRC != w.crc || p.NextID != 3 || len(p.Warnings) > 0 {
			t.Errorf("%+v: %+v", o, p)
		}
		if last := p.Active(); !slices.Equal(last.Index, w.index.Entries()) || last.Size != w.pos || last.NewestMicros != w.micros {
			t.Errorf("active segment %+v", last)
		}
		if got := contents(t, m, p); !slices.Equal(got, w.records) {
			t.Errorf("holds %d records, written were %d", len(got), len(w.records))
		}
	}
}

func TestFreshLog(t *testing.T) {
	m := fstest.New(1)
	if err := fs.MkdirDurable(m, testDir); err != nil {
		t.Fatal(err)
	}
	p := recovered(t, m, Options{BaseOffset: 7})
	if p.Verdict != Fresh || p.Base != 7 || p.Tail != 7 || p.NextID != 0 {
		t.Fatalf("%+v", p)
	}
	file, err := CreateSegment(m, testDir, p.NextID, segment.Header{BaseOffset: p.Tail}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p = recovered(t, m, Options{BaseOffset: 99})
	if p.Verdict != Clean || p.Base != 7 || p.Tail != 7 || p.NextID != 1 {
		t.Fatalf("%+v", p)
	}
}

func TestMissingDirectoryIsAnError(t *testing.T) {
	if p, err := Inspect(fstest.New(1), testDir, Options{}); err == nil {
		t.Fatalf("%+v", p)
	}
}
