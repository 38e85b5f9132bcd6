package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/felixlog/felix/storage/fs"
)

const (
	voidsFile  = "voids"
	voidsMagic = 0x464C5856 // "FLXV"
	// maxVoids bounds the file, in bytes.
	maxVoids = 16 << 20
)

// voids says, by log, up to which round what the journal holds of it is void.
type voids map[string]uint64

func (v voids) append(dst []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, voidsMagic)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		dst = binary.BigEndian.AppendUint64(dst, v[name])
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
		dst = append(dst, name...)
	}
	binary.BigEndian.PutUint32(dst[at+4:], crc32.Checksum(dst[at+8:], castagnoli))
	return dst
}

var errVoids = errors.New("list of voids does not verify")

func parseVoids(b []byte) (voids, error) {
	if len(b) < 12 || binary.BigEndian.Uint32(b) != voidsMagic || binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return nil, errVoids
	}
	count, b := binary.BigEndian.Uint32(b[8:]), b[12:]
	v := make(voids)
	for range count {
		if len(b) < 10 {
			return nil, errVoids
		}
		number, name := binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[8:]))
		if b = b[10:]; len(b) < name {
			return nil, errVoids
		}
		v[string(b[:name])], b = number, b[name:]
	}
	if len(b) > 0 || len(v) != int(count) {
		return nil, errVoids
	}
	return v, nil
}

func readVoids(f fs.FS, dir string) (voids, error) {
	path := filepath.Join(dir, voidsFile)
	b, err := fs.ReadFile(f, path, maxVoids)
	if errors.Is(err, fs.ErrNotExist) {
		return make(voids), nil
	}
	if err != nil {
		return nil, err
	}
	v, err := parseVoids(b)
	if err != nil {
		return nil, &DamagedError{Path: path, Err: err}
	}
	return v, nil
}

// Forget makes durable that nothing the journal has of some logs holds any more:
// they are closed, and are about to be removed. Another log may then have the
// name of one.
func (j *Journal) Forget(names []string) error { return j.voidAll(names, j.newest()) }

// void makes durable that nothing of a log up to a round holds any more.
func (j *Journal) void(name string, number uint64) error { return j.voidAll([]string{name}, number) }

func (j *Journal) voidAll(names []string, number uint64) error {
	j.voidMu.Lock()
	defer j.voidMu.Unlock()
	next := maps.Clone(j.voids)
	changed := false
	for _, name := range names {
		if next[name] < number {
			next[name], changed = number, true
		}
	}
	if !changed {
		return nil
	}
	list := next.append(nil)
	if len(list) > maxVoids {
		return fmt.Errorf("void journal rounds of %d logs: the list has no room; it is emptied by a restart", len(names))
	}
	if err := fs.WriteDurable(j.fs, filepath.Join(Dir(j.root), voidsFile), list); err != nil {
		return fmt.Errorf("void journal rounds of %s: %w", strings.Join(names[:min(len(names), 3)], ", "), err)
	}
	j.voids = next
	return nil
}
