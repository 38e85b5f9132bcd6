package journal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

const root = "/store"

// A fakeLog is the least a log is: one segment that grows, committed through
// the journal or by its own sync. Its bytes are a function of its name and the
// position, and of how often it was cut.
type fakeLog struct {
	name   string
	f      fs.File
	m      *Member
	size   int64 // written
	acked  int64 // acknowledged
	cuts   byte
	direct int // commits the journal did not take
	broken error
}

func (l *fakeLog) SyncFiles() error {
	if l.broken != nil {
		return l.broken
	}
	return l.f.Sync()
}

func (l *fakeLog) pattern(from, to int64) []byte {
	b := make([]byte, to-from)
	for i := range b {
		b[i] = byte(from+int64(i)) ^ l.name[len(l.name)-1] ^ l.cuts<<6
	}
	return b
}

// commit writes n bytes and makes them durable.
func (l *fakeLog) commit(n int64) error {
	b := l.pattern(l.size, l.size+n)
	if _, err := l.f.WriteAt(b, l.size); err != nil {
		return err
	}
	at := l.size
	l.size += n
	if !l.m.Commit(0, at, b) {
		l.direct++
		if err := l.f.Sync(); err != nil {
			return err
		}
	}
	l.acked = l.size
	return nil
}

// cut goes back to half of what was acknowledged and on from there with other
// bytes.
func (l *fakeLog) cut() error {
	if err := l.f.Sync(); err != nil {
		return err
	}
	if err := l.m.Void(); err != nil {
		return err
	}
	l.size = l.acked / 2
	l.acked = l.size
	if err := l.f.Truncate(l.size); err != nil {
		return err
	}
	return l.f.Sync()
}

func makeLog(t testing.TB, f fs.FS, j *Journal, name string) *fakeLog {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := fs.MkdirDurable(f, dir); err != nil {
		t.Fatal(err)
	}
	file, err := f.Create(filepath.Join(dir, segment.FileName(0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	l := &fakeLog{name: name, f: file}
	l.m = j.Join(name, l)
	return l
}

func content(t testing.TB, f fs.FS, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(f, filepath.Join(root, name, segment.FileName(0)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t testing.TB, f fs.FS, o Options) *Journal {
	t.Helper()
	j, err := Open(f, root, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func newDisk(seed uint64) *fstest.Mem { return fstest.New(seed) }

func logName(i int) string { return fmt.Sprintf("caches/t_n_s_%d-%04x", i, i) }
