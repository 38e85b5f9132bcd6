package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
)

// walk calls visit with every entry of the journal that is not void, in order;
// the bytes are valid until it returns. It answers how many rounds there are and
// the number of the newest.
func walk(f fs.FS, root string, voided voids, visit func(entry) error) (rounds int, newest uint64, err error) {
	dir := Dir(root)
	all, err := scanAll(f, dir)
	if err != nil {
		return 0, 0, fmt.Errorf("read commit journal: %w", err)
	}
	var files [2]fs.File
	defer func() {
		for _, file := range files {
			if file != nil {
				err = errors.Join(err, file.Close())
			}
		}
	}()
	var buf []byte
	for _, round := range all {
		newest = max(newest, round.number)
		if files[round.file] == nil {
			if files[round.file], err = f.Open(filepath.Join(dir, fileName(round.file))); err != nil {
				return 0, 0, fmt.Errorf("read commit journal: %w", err)
			}
		}
		if buf, err = readRound(files[round.file], buf, round.position, round.roundHeader); err != nil {
			return 0, 0, fmt.Errorf("read commit journal: %w", err)
		}
		_, entries, ok := parseRound(buf)
		if !ok {
			return 0, 0, fmt.Errorf("read commit journal: %w", io.ErrUnexpectedEOF)
		}
		for _, e := range entries {
			if round.number <= voided[e.log] {
				continue
			}
			if err := visit(e); err != nil {
				return 0, 0, fmt.Errorf("bring a journal round to %s: %w", e.log, err)
			}
		}
	}
	return len(all), newest, nil
}
