package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// TrashDir names the directory under the root that removed logs are renamed
// into before their files are deleted: what lies there is never served.
const TrashDir = "trash"

func (s *Store) trash() string { return filepath.Join(s.cfg.Root, TrashDir) }

// maxTrashNames bounds the search for a free name in the trash.
const maxTrashNames = 10_000

// discard renames a log's directory into the trash. The names are not synced
// yet.
func (s *Store) discard(v victim) error {
	base := v.id.space.Kind() + "." + filepath.Base(v.dir)
	for n := range maxTrashNames {
		to := filepath.Join(s.trash(), fmt.Sprintf("%s.%d", base, n))
		_, err := s.fs.Stat(to)
		if err == nil {
			continue // an earlier one that is not deleted yet
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return s.fs.Rename(v.dir, to)
	}
	return fmt.Errorf("%s: %d removed logs of one name are not deleted yet; delete what is in %s", v.dir, maxTrashNames, s.trash())
}

// emptyTrash deletes what is in the trash until ctx ends or the store closes.
// What cannot be deleted is logged and left for the next time.
func (s *Store) emptyTrash(ctx context.Context) {
	s.emptying.Lock()
	defer s.emptying.Unlock()
	names, err := s.fs.List(s.trash())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.logger.Warn("trash not read: removed logs still take space", "dir", s.trash(), "error", err)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if ctx.Err() != nil || s.deleting.Err() != nil {
			return
		}
		dir := filepath.Join(s.trash(), name)
		if again := s.stillServed(name, dir); again != "" {
			s.logger.Warn("removed log not deleted: it is also where it was; remove the stream or cache again", "trash", dir, "dir", again)
			continue
		}
		if err := s.deleteDir(ctx, dir); err != nil && ctx.Err() == nil && s.deleting.Err() == nil {
			s.logger.Warn("removed log not deleted: it still takes space, and the next start tries again", "dir", dir, "error", err)
		}
	}
}

// stillServed is the directory a log in the trash was renamed from, where the
// same log is still there: a file system that loses power between the two
// halves of a rename may leave both names for one directory.
func (s *Store) stillServed(name, dir string) string {
	kind, rest, _ := strings.Cut(name, ".")
	at := strings.LastIndexByte(rest, '.')
	i := slices.IndexFunc(Spaces(), func(space Space) bool { return space.Kind() == kind })
	if at < 0 || i < 0 || !shardDirName.MatchString(rest[:at]) {
		return ""
	}
	from := filepath.Join(s.cfg.Root, string(Spaces()[i]), rest[:at])
	was, marked, err := readUID(s.fs, dir)
	is, isMarked, isErr := readUID(s.fs, from)
	if err != nil || isErr != nil || !marked || !isMarked || was != is {
		return ""
	}
	return from
}

// deleteDir deletes a log's directory: its files and then itself. A log has no
// directories of its own, and what else there is stays.
func (s *Store) deleteDir(ctx context.Context, dir string) error {
	names, err := s.fs.List(dir)
	if err != nil {
		return err
	}
	// What says whose data it is goes last.
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(lastOf(a), lastOf(b)) })
	for _, name := range names {
		if err := errors.Join(ctx.Err(), s.deleting.Err()); err != nil {
			return err
		}
		if err := s.fs.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := s.fs.Remove(dir); err != nil {
		return err
	}
	return s.fs.SyncDir(s.trash())
}

// lastOf is a name to sort by.
func lastOf(name string) string {
	if name == segment.IdentityFile || name == segment.UIDFile {
		return "~" + name
	}
	return name
}
