package storage

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// MismatchError says that a directory holds the log of another shard: a copy
// in the wrong place, or two keys of one hash.
type MismatchError struct {
	Dir string
	// Want is whose log was asked for, Found whose it is: kind and key.
	Want, Found string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s holds the log of %s, not of %s", e.Dir, e.Found, e.Want)
}

func (id slotKey) identity() segment.Identity {
	return segment.Identity{
		Space: string(id.space), Tenant: id.key.Tenant, Namespace: id.key.Namespace, Name: id.key.Name, Shard: id.key.Shard,
	}
}

// keyOf is the other direction.
func keyOf(id segment.Identity) slotKey {
	return slotKey{Space(id.Space), Key{Tenant: id.Tenant, Namespace: id.Namespace, Name: id.Name, Shard: id.Shard}}
}

// String is the shard's kind and label: stream acme/default/orders/0.
func (id slotKey) String() string { return id.space.Kind() + " " + id.key.String() }

// claimDir checks that a directory belongs to the shard, or marks it as the
// shard's where nothing says whose it is.
func claimDir(f fs.FS, dir string, id slotKey) error {
	path := filepath.Join(dir, segment.IdentityFile)
	data, err := fs.ReadFile(f, path, segment.MaxSideFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := fs.WriteDurable(f, path, id.identity().Append(nil)); err != nil {
			return fmt.Errorf("open log %s: %w", id.key, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("open log %s: %w", id.key, err)
	}
	found, err := segment.ParseIdentity(data)
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		return fmt.Errorf("open log %s: %w", id.key, damage.At(path, 0, 0))
	}
	if err != nil {
		return fmt.Errorf("open log %s: %w", id.key, err)
	}
	if found != id.identity() {
		return &MismatchError{Dir: dir, Want: id.String(), Found: keyOf(found).String()}
	}
	return nil
}
