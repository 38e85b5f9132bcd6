package storage

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// TestKilledBetweenMkdirAndSync: a process that died right after it made the
// directories left names nobody ever synced. The next one must not acknowledge
// anything below them before it has.
func TestKilledBetweenMkdirAndSync(t *testing.T) {
	for seed := range uint64(20) {
		m := fstest.New(seed)
		for _, space := range []Space{Streams, Caches} {
			dir := filepath.Join(testRoot, string(space))
			var missing []string
			for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
				missing = append(missing, at)
			}
			for i := len(missing) - 1; i >= 0; i-- {
				if err := m.Mkdir(missing[i]); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
		}
		m = m.Kill()
		s := open(t, m, nil)
		if _, err := mustOpen(t, s, Caches, key(0), LogOptions{}).AppendWait(entry(1, 1)); err != nil {
			t.Fatal(err)
		}
		s = open(t, m.Crash(seed+100), nil)
		if tail := mustOpen(t, s, Caches, key(0), LogOptions{}).Tail(); tail != 1 {
			t.Fatalf("seed %d: tail %d after an acknowledged append", seed, tail)
		}
	}
}
