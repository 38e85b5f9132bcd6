package storage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// InUseError refuses to remove a log that is open.
type InUseError struct {
	// Log is its kind and label: stream acme/default/orders/0.
	Log string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the log of %s is open: end what serves it before its data is removed", e.Log)
}

// errPurging makes who asked for a log that is being removed ask again.
var errPurging = errors.New("log is being removed")

// A Target names the logs to remove: those of all shards of one stream or cache,
// in some spaces, as far as they belong to one creation of it.
type Target struct {
	Spaces                  []Space
	Tenant, Namespace, Name string
	// UID is that creation (control plane 4.4). It is never empty.
	UID string
}

// A victim is a log to remove.
type victim struct {
	id  slotKey
	dir string
}

// Purge removes the logs of a target from disk, and counts the shards that had
// any. What belongs to another uid, to none, or to nobody knows whom, stays and
// is logged. A log that is open is an *InUseError.
//
// Logs go out of service by a rename into the trash, which is durable before a
// file is deleted; what a crash leaves there is deleted after the next start. An
// error, or the end of ctx, leaves each log whole in its place or in the trash:
// purging again finishes, and purging what is gone removes nothing. Files that
// cannot be deleted are logged and no error: nothing serves them any more.
func (s *Store) Purge(ctx context.Context, t Target) (shards int, err error) {
	if t.UID == "" {
		return 0, errors.New("storage: data is removed by its uid, and none is named")
	}
	if err := CheckUID(t.UID); err != nil {
		return 0, err
	}
	victims, err := s.findVictims(t)
	if err != nil || len(victims) == 0 {
		return 0, err
	}
	release, err := s.reserve(victims)
	if err != nil {
		return 0, err
	}
	defer release()
	removed, err := s.discardAll(ctx, victims)
	s.emptyTrash(ctx)
	seen := make(map[uint32]bool)
	for _, v := range removed {
		seen[v.id.key.Shard] = true
	}
	return len(seen), err
}

// findVictims lists the logs of a target by what is on disk.
func (s *Store) findVictims(t Target) ([]victim, error) {
	var victims []victim
	prefix := readable(t.Tenant) + "_" + readable(t.Namespace) + "_" + readable(t.Name) + "_"
	for _, space := range t.Spaces {
		names, err := s.fs.List(filepath.Join(s.cfg.Root, string(space)))
		if err != nil {
			return nil, fmt.Errorf("find logs to remove: %w", err)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) || !shardDirName.MatchString(name) {
				continue
			}
			v := victim{dir: filepath.Join(s.cfg.Root, string(space), name)}
			mine, err := s.isTarget(&v, space, t)
			if err != nil {
				s.logger.Warn("log not removed: whose it is cannot be read", "dir", v.dir, "error", err)
			} else if mine {
				victims = append(victims, v)
			}
		}
	}
	return victims, nil
}

// isTarget reads whose log a directory holds, and says whether it is the
// target's.
func (s *Store) isTarget(v *victim, space Space, t Target) (bool, error) {
	data, err := fs.ReadFile(s.fs, filepath.Join(v.dir, segment.IdentityFile), segment.MaxSideFile)
	if err != nil {
		return false, err
	}
	identity, err := segment.ParseIdentity(data)
	if err != nil {
		return false, err
	}
	v.id = keyOf(identity)
	k := v.id.key
	if k.Tenant != t.Tenant || k.Namespace != t.Namespace || k.Name != t.Name {
		return false, nil // another name that reads alike
	}
	if v.id.space != space || DirName(k) != filepath.Base(v.dir) {
		return false, fmt.Errorf("it holds the log of %s", v.id)
	}
	have, marked, err := readUID(s.fs, v.dir)
	switch {
	case err != nil:
		return false, err
	case !marked:
		s.logger.Warn("log not removed: nothing says which uid it belongs to", "dir", v.dir, "uid", t.UID)
	case have != t.UID:
		s.logger.Warn("log not removed: it belongs to another uid", "dir", v.dir, "uid", t.UID, "has", have)
	}
	return marked && have == t.UID, nil
}

// reserve keeps logs from being opened until release is called.
func (s *Store) reserve(victims []victim) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	for _, v := range victims {
		if s.slots[v.id] != nil {
			return nil, &InUseError{Log: v.id.String()}
		}
	}
	held := make([]*slot, len(victims))
	for i, v := range victims {
		sl := newSlot(v.id, "")
		sl.urgent, sl.purging, sl.err = true, true, errPurging
		s.slots[v.id], held[i] = sl, sl
	}
	s.cleaning.Add(1)
	return func() {
		defer s.cleaning.Done()
		for _, sl := range held {
			s.forget(sl)
			close(sl.done)
		}
	}, nil
}

// discardAll takes logs out of service, for good once it returns without an
// error.
func (s *Store) discardAll(ctx context.Context, victims []victim) (removed []victim, err error) {
	if err := fs.MkdirDurable(s.fs, s.trash()); err != nil {
		return nil, fmt.Errorf("make trash: %w", err)
	}
	if err := s.voidJournal(victims); err != nil {
		return nil, err
	}
	spaces := make(map[Space]bool)
	var errs []error
	for _, v := range victims {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if err := s.discard(v); err != nil {
			errs = append(errs, fmt.Errorf("remove log of %s: %w", v.id, err))
			continue
		}
		removed = append(removed, v)
		spaces[v.id.space] = true
	}
	// The new names first: a log must not lose both.
	if err := s.fs.SyncDir(s.trash()); err != nil {
		return nil, errors.Join(append(errs, fmt.Errorf("sync trash: %w", err))...)
	}
	for space := range spaces {
		if err := s.fs.SyncDir(filepath.Join(s.cfg.Root, string(space))); err != nil {
			return nil, errors.Join(append(errs, fmt.Errorf("sync removal: %w", err))...)
		}
	}
	return removed, errors.Join(errs...)
}

// voidJournal makes what the commit journal has of logs that go void, or a
// recovery would write it into logs of the same names made later.
func (s *Store) voidJournal(victims []victim) error {
	if s.journal == nil {
		return nil
	}
	names := make([]string, len(victims))
	for i, v := range victims {
		names[i] = journalName(v.id)
	}
	return s.journal.Forget(names)
}
