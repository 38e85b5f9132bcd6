package storage

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// A Space is a set of shards with directories of their own, so that a stream
// and a cache may have the same name.
type Space string

// The spaces of a store. Only Streams has records that retention may remove:
// the others hold the latest of each key, and compact.
const (
	Streams     Space = ""
	Caches      Space = "caches"
	Counters    Space = "counters"
	Groups      Space = "groups"
	DeadLetters Space = "dead-letters"
)

// Spaces lists them all.
func Spaces() []Space { return []Space{Streams, Caches, Counters, Groups, DeadLetters} }

// known reports whether s is one of the spaces.
func (s Space) known() bool {
	for _, space := range Spaces() {
		if s == space {
			return true
		}
	}
	return false
}

// Kind is the word for what a shard of the space holds: stream, cache,
// counters, groups or dead-letters.
func (s Space) Kind() string {
	switch s {
	case Streams:
		return "stream"
	case Caches:
		return "cache"
	}
	return string(s)
}

// projection reports whether the logs of the space are the latest of each key.
func (s Space) projection() bool { return s != Streams }

// A Key names a shard within a space.
type Key struct {
	Tenant, Namespace, Name string
	Shard                   uint32
}

// String is the label of errors and logs: tenant/namespace/name/shard.
func (k Key) String() string {
	return k.Tenant + "/" + k.Namespace + "/" + k.Name + "/" + strconv.FormatUint(uint64(k.Shard), 10)
}

// ParseKey reads what Key.String writes. The names of a key hold no slash.
func ParseKey(label string) (Key, error) {
	parts := strings.Split(label, "/")
	if len(parts) != 4 {
		return Key{}, fmt.Errorf("shard %q: want tenant/namespace/name/shard", label)
	}
	shard, err := strconv.ParseUint(parts[3], 10, 32)
	if err != nil {
		return Key{}, fmt.Errorf("shard %q: %q is no shard number", label, parts[3])
	}
	return Key{Tenant: parts[0], Namespace: parts[1], Name: parts[2], Shard: uint32(shard)}, nil
}

// DirName is the name of the shard's directory (storage 2.1): what can be read
// of the key, then a hash of all of it.
func DirName(k Key) string {
	return fmt.Sprintf("%s_%s_%s_%d-%016x", readable(k.Tenant), readable(k.Namespace), readable(k.Name), k.Shard, k.hash())
}

// readableLength is how many characters of a name are kept.
const readableLength = 32

// readable makes of a name what any file system takes. There is no dot in it,
// so it cannot lead to another directory.
func readable(name string) string {
	var out []byte
	for _, r := range name {
		if len(out) == readableLength {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			out = append(out, byte(r))
		default:
			out = append(out, '_')
		}
	}
	if len(out) == 0 {
		return "_"
	}
	return string(out)
}

// hash is FNV-1a 64 over the parts, each after its length, and the shard.
func (k Key) hash() uint64 {
	h := fnv.New64a()
	var b []byte
	for _, part := range []string{k.Tenant, k.Namespace, k.Name} {
		b = binary.BigEndian.AppendUint64(b[:0], uint64(len(part)))
		h.Write(append(b, part...))
	}
	h.Write(binary.BigEndian.AppendUint32(b[:0], k.Shard))
	return h.Sum64()
}
