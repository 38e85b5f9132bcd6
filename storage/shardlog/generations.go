package shardlog

import (
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// RecordGeneration notes durably that a leadership's records begin at start. A
// generation that is not newer than the newest is ignored (storage 13).
func (l *Log) RecordGeneration(generation, start uint64) error {
	if err := l.refused(); err != nil {
		return err
	}
	return l.changeGenerations(func(g segment.Generations) segment.Generations {
		return g.Record(generation, start)
	})
}

// cutGenerations forgets the leaderships that began at or past offset.
func (l *Log) cutGenerations(offset uint64) error {
	return l.changeGenerations(func(g segment.Generations) segment.Generations {
		return g.Cut(offset)
	})
}

func (l *Log) changeGenerations(change func(segment.Generations) segment.Generations) error {
	l.side.Lock()
	defer l.side.Unlock()
	old := l.Generations()
	next := change(slices.Clone(old))
	if slices.Equal(old, next) {
		return nil
	}
	if err := l.saveSide(segment.EpochsFile, next.Append(nil)); err != nil {
		return err
	}
	l.mu.Lock()
	l.replication.generations = next
	l.mu.Unlock()
	return nil
}

// saveSide replaces a side file durably.
func (l *Log) saveSide(name string, data []byte) error {
	if err := l.poisoned(); err != nil {
		return err
	}
	if err := fs.WriteDurable(l.fs, filepath.Join(l.dir, name), data); err != nil {
		return l.fileError("write "+name, err)
	}
	return nil
}

// Generations is the history of leaderships, oldest first. The caller must not
// change it.
func (l *Log) Generations() segment.Generations {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replication.generations
}

// GenerationEnd is the offset after the last record of a generation; ok is
// false if that is not known, and it must not be guessed then.
func (l *Log) GenerationEnd(generation uint64) (offset uint64, ok bool) {
	return l.Generations().End(generation, l.Tail())
}
