package journal

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// What a view shows is what recovery then makes, and it changes nothing.
func TestAViewShowsWhatRecoveryMakes(t *testing.T) {
	lacking := 0
	for seed := range uint64(60) {
		disk := newDisk(seed)
		j := open(t, disk, Options{FileBytes: int64(6+seed) * alignment})
		logs := []*fakeLog{makeLog(t, disk, j, logName(0)), makeLog(t, disk, j, logName(1))}
		for i := range 12 {
			if err := logs[i%2].commit(int64(100 + 700*i)); err != nil {
				t.Fatal(err)
			}
			if i == 7 {
				if err := logs[0].cut(); err != nil {
					t.Fatal(err)
				}
			}
		}
		j.checkpoints.Wait()
		disk = disk.Crash(seed + 1)
		view, err := NewView(disk, root)
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string][]byte{}
		for _, l := range logs {
			path := filepath.Join(root, l.name, segment.FileName(0))
			if shown[l.name], err = fs.ReadFile(view, path, 1<<20); err != nil {
				t.Fatal(err)
			}
			if info, err := view.Stat(path); err != nil || info.Size != int64(len(shown[l.name])) {
				t.Fatalf("size %d, %v; %d bytes are read", info.Size, err, len(shown[l.name]))
			}
			if view.Missing(filepath.Dir(path)) > 0 {
				lacking++
			}
		}
		open(t, disk, Options{})
		for _, l := range logs {
			if !bytes.Equal(shown[l.name], content(t, disk, l.name)) {
				t.Fatalf("seed %d: the view of %s is not what recovery made", seed, l.name)
			}
		}
	}
	if lacking == 0 {
		t.Error("no log lacked anything: the test shows nothing")
	}
}

func TestAStoreWithoutAJournalHasAView(t *testing.T) {
	disk := newDisk(1)
	if err := fs.MkdirDurable(disk, root); err != nil {
		t.Fatal(err)
	}
	view, err := NewView(disk, root)
	if err != nil || view.Missing(root) != 0 {
		t.Errorf("%v, %v", view, err)
	}
}
