package fs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// eachFS runs a test on the machine's file system and on the one in memory,
// which must not differ in anything the log relies on.
func eachFS(t *testing.T, test func(t *testing.T, f fs.FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, fs.OS(), t.TempDir()) })
	t.Run("memory", func(t *testing.T) { test(t, fstest.New(1), "/") })
	t.Run("without faults", func(t *testing.T) { test(t, fstest.NewFaults(fstest.New(1)), "/") })
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestFiles(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		name := filepath.Join(dir, "a")
		_, err := f.Open(name)
		wantError(t, err, fs.ErrNotExist)
		_, err = f.OpenWrite(name)
		wantError(t, err, fs.ErrNotExist)

		file := must[fs.File](t)(f.Create(name))
		_, err = f.Create(name)
		wantError(t, err, fs.ErrExist)
		must[int](t)(file.WriteAt([]byte("world"), 5))
		must[int](t)(file.WriteAt([]byte("hello"), 0))
		check(t, file.Sync())
		check(t, f.SyncDir(dir))
		if size := must[int64](t)(file.Size()); size != 10 {
			t.Errorf("size %d", size)
		}
		wantContent(t, file, "helloworld")

		reader := must[fs.File](t)(f.Open(name))
		if _, err := reader.WriteAt([]byte("x"), 0); err == nil {
			t.Error("a file opened for reading was written")
		}
		buf := make([]byte, 4)
		if n, err := reader.ReadAt(buf, 8); n != 2 || err != io.EOF {
			t.Errorf("read past the end: %d, %v", n, err)
		}
		if n, err := reader.ReadAt(buf, 99); n != 0 || err != io.EOF {
			t.Errorf("read behind the end: %d, %v", n, err)
		}

		check(t, file.Truncate(7))
		check(t, file.Truncate(12))
		wantContent(t, reader, "hellowo\x00\x00\x00\x00\x00")
		if info := must[fs.Info](t)(f.Stat(name)); info != (fs.Info{Size: 12}) {
			t.Errorf("described as %+v", info)
		}
		check(t, file.Close())
		if err := file.Close(); err == nil {
			t.Error("closed twice")
		}
		_, err = file.ReadAt(buf, 0)
		wantError(t, err, os.ErrClosed)

		again := must[fs.File](t)(f.OpenWrite(name))
		must[int](t)(again.WriteAt([]byte("J"), 0))
		wantContent(t, reader, "Jellowo\x00\x00\x00\x00\x00")
		check(t, f.Remove(name))
		wantContent(t, reader, "Jellowo\x00\x00\x00\x00\x00")
		wantError(t, f.Remove(name), fs.ErrNotExist)
		check(t, errors.Join(again.Close(), reader.Close()))
	})
}

func wantContent(t *testing.T, file fs.File, want string) {
	t.Helper()
	got := make([]byte, must[int64](t)(file.Size()))
	if _, err := file.ReadAt(got, 0); err != nil && err != io.EOF || string(got) != want {
		t.Errorf("content %q, %v; want %q", got, err, want)
	}
}

func TestReserveKeepsTheSize(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		file := must[fs.File](t)(f.Create(filepath.Join(dir, "a")))
		if err := file.Reserve(1 << 20); err != nil && !errors.Is(err, fs.ErrUnsupported) {
			t.Error(err)
		}
		if size := must[int64](t)(file.Size()); size != 0 {
			t.Errorf("size %d", size)
		}
		check(t, file.Close())
	})
}

func TestNames(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		sub := filepath.Join(dir, "sub")
		wantError(t, f.Mkdir(filepath.Join(sub, "deeper")), fs.ErrNotExist)
		check(t, f.Mkdir(sub))
		wantError(t, f.Mkdir(sub), fs.ErrExist)
		a, b := filepath.Join(sub, "a"), filepath.Join(sub, "b")
		check(t, fs.WriteDurable(f, a, []byte("A")))
		check(t, fs.WriteDurable(f, b, []byte("B")))
		if err := f.Remove(sub); err == nil {
			t.Error("a directory with files was removed")
		}
		check(t, f.Rename(a, b))
		wantError(t, f.Rename(a, b), fs.ErrNotExist)
		if got := must[[]byte](t)(fs.ReadFile(f, b, 10)); string(got) != "A" {
			t.Errorf("content %q after rename", got)
		}
		if names := must[[]string](t)(f.List(sub)); !slices.Equal(names, []string{"b"}) {
			t.Errorf("listed %q", names)
		}
		if info := must[fs.Info](t)(f.Stat(sub)); !info.Dir {
			t.Errorf("described as %+v", info)
		}
		check(t, f.Remove(b))
		check(t, f.Remove(sub))
		_, err := f.Stat(sub)
		wantError(t, err, fs.ErrNotExist)
		_, err = f.List(sub)
		wantError(t, err, fs.ErrNotExist)
		wantError(t, f.SyncDir(sub), fs.ErrNotExist)
		if free := must[uint64](t)(f.Free(dir)); free == 0 {
			t.Error("no space")
		}
	})
}

func TestLock(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		name := filepath.Join(dir, "lock")
		lock := must[io.Closer](t)(f.Lock(name))
		var locked *fs.LockedError
		if _, err := f.Lock(name); !errors.As(err, &locked) || locked.Path != name {
			t.Fatalf("locked twice: %v", err)
		}
		if locked.PID != 0 && locked.PID != os.Getpid() {
			t.Errorf("held by %d", locked.PID)
		}
		check(t, lock.Close())
		check(t, must[io.Closer](t)(f.Lock(name)).Close())
	})
}

func TestLockNamesItsHolder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	// A longer number from a former holder must not show through.
	check(t, os.WriteFile(name, []byte("1234567890123\n"), 0o600))
	lock := must[io.Closer](t)(fs.OS().Lock(name))
	defer lock.Close()
	_, err := fs.OS().Lock(name)
	if want := fmt.Sprintf("%s is locked by process %d", name, os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadFileIsBounded(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		name := filepath.Join(dir, "a")
		check(t, fs.WriteDurable(f, name, []byte("12345")))
		if got := must[[]byte](t)(fs.ReadFile(f, name, 5)); string(got) != "12345" {
			t.Errorf("read %q", got)
		}
		var large *fs.TooLargeError
		if _, err := fs.ReadFile(f, name, 4); !errors.As(err, &large) || large.Size != 5 {
			t.Errorf("got %v", err)
		}
		check(t, fs.WriteDurable(f, name, nil))
		if got := must[[]byte](t)(fs.ReadFile(f, name, 0)); len(got) != 0 {
			t.Errorf("read %q", got)
		}
	})
}

func TestWriteDurableOverAStaleTemporary(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		name := filepath.Join(dir, "a")
		stale := must[fs.File](t)(f.Create(name + fs.TempSuffix))
		must[int](t)(stale.WriteAt(bytes.Repeat([]byte("stale"), 100), 0))
		check(t, stale.Close())
		check(t, fs.WriteDurable(f, name, []byte("new")))
		if got := must[[]byte](t)(fs.ReadFile(f, name, 100)); string(got) != "new" {
			t.Errorf("read %q", got)
		}
		if names := must[[]string](t)(f.List(dir)); !slices.Equal(names, []string{"a"}) {
			t.Errorf("left %q", names)
		}
	})
}

func TestMkdirDurable(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		deep := filepath.Join(dir, "x", "y", "z")
		for range 2 {
			check(t, fs.MkdirDurable(f, deep))
		}
		file := filepath.Join(dir, "file")
		check(t, fs.WriteDurable(f, file, nil))
		if err := fs.MkdirDurable(f, file); err == nil {
			t.Error("a file passes for a directory")
		}
		if err := fs.MkdirDurable(f, filepath.Join(file, "below")); err == nil {
			t.Error("a directory below a file")
		}
	})
}

func TestIsFull(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false, nil: false,
		&os.PathError{Err: fmt.Errorf("wrapped: %w", syscall.ENOSPC)}: true,
	} {
		if fs.IsFull(err) != want {
			t.Errorf("%v", err)
		}
	}
}

// Whatever fails within WriteDurable, and if the power fails then, the file has
// its old content or the new one.
func TestWriteDurableIsAllOrNothing(t *testing.T) {
	for n := 1; ; n++ {
		mem := fstest.New(uint64(n))
		check(t, fs.WriteDurable(mem, "/a", []byte("old content")))
		faults := fstest.NewFaults(mem)
		rule := faults.FailNth(n, true, nil)
		err := fs.WriteDurable(faults, "/a", []byte("new"))
		for seed := range uint64(20) {
			got, readErr := fs.ReadFile(mem.Clone().Crash(seed), "/a", 100)
			switch {
			case readErr != nil:
				t.Fatalf("call %d failing, seed %d: %v", n, seed, readErr)
			case string(got) != "new" && (err == nil || string(got) != "old content"):
				t.Fatalf("call %d failing, seed %d: %q, though the answer was %v", n, seed, got, err)
			}
		}
		if rule.Hits() == 0 {
			if n < 6 {
				t.Fatalf("only %d calls", n)
			}
			return
		}
		if err == nil || !errors.Is(err, fstest.ErrInjected) {
			t.Fatalf("call %d failing: %v", n, err)
		}
	}
}

func TestMkdirDurableSurvives(t *testing.T) {
	for seed := range uint64(50) {
		mem := fstest.New(seed)
		check(t, fs.MkdirDurable(mem, "/x/y/z"))
		check(t, fs.WriteDurable(mem, "/x/y/z/a", []byte("kept")))
		disk := mem.Crash(seed)
		if got := must[[]byte](t)(fs.ReadFile(disk, "/x/y/z/a", 10)); string(got) != "kept" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

// A process that died between making a directory and syncing its parent left
// something the next one must heal (storage 2.3).
func TestMkdirDurableHealsAnUnsyncedDirectory(t *testing.T) {
	for seed := range uint64(50) {
		mem := fstest.New(seed)
		check(t, mem.Mkdir("/x"))
		mem = mem.Kill()
		check(t, fs.MkdirDurable(mem, "/x"))
		if _, err := mem.Crash(seed).Stat("/x"); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	eachFS(t, func(t *testing.T, f fs.FS, dir string) {
		_, err := f.Open(filepath.Join(dir, "missing"))
		if err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("got %v", err)
		}
	})
}
