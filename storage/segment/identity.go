package segment

import "unicode/utf8"

const (
	identityMagic = 0x464C5844 // "FLXD"
	identityFixed = 12
	nameSize      = 2
	// MaxIdentityName bounds each name of an identity, in bytes.
	MaxIdentityName = 1024
)

// Identity is the file identity: whose log the directory holds. Directory names
// are hashed, and two keys must never share a log.
type Identity struct {
	Space                   string // "" for streams, else "caches" and so on
	Tenant, Namespace, Name string
	Shard                   uint32
}

// Append appends the file.
func (id Identity) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendSide(dst, identityMagic, 0)
	dst = appendU32(dst, id.Shard)
	for _, s := range [...]string{id.Space, id.Tenant, id.Namespace, id.Name} {
		dst = appendU16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	return appendU32(dst, checksum(dst[start:]))
}

// ParseIdentity reads the file.
func ParseIdentity(b []byte) (Identity, error) {
	own, err := openSide(b, identityMagic, identityFixed+4*nameSize+sumSize)
	if err != nil {
		return Identity{}, err
	}
	if own != 0 {
		return Identity{}, corrupt(SideFileValue, 6, "reserved bytes are not zero")
	}
	id := Identity{Shard: getU32(b[8:])}
	at := identityFixed
	for _, name := range [...]*string{&id.Space, &id.Tenant, &id.Namespace, &id.Name} {
		if *name, at, err = parseName16(b, at); err != nil {
			return Identity{}, err
		}
	}
	if err := closeSide(b, at, at+sumSize); err != nil {
		return Identity{}, err
	}
	return id, nil
}

func parseName16(b []byte, at int) (name string, next int, err error) {
	if len(b)-at < nameSize {
		return "", 0, truncated(at+nameSize, len(b))
	}
	n := int(getU16(b[at:]))
	at += nameSize
	if n > MaxIdentityName {
		return "", 0, corrupt(SideFileLength, int64(at), "a name of %d bytes", n)
	}
	if len(b)-at < n {
		return "", 0, truncated(at+n, len(b))
	}
	name = string(b[at : at+n])
	if !utf8.ValidString(name) {
		return "", 0, corrupt(SideFileValue, int64(at), "a name is not UTF-8")
	}
	return name, at + n, nil
}
