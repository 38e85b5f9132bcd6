package placement

import "math/bits"

// The numbers of FNV-1a and of the finaliser of splitmix64 (control plane 7.2).
const (
	fnvBasis = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
	golden   = 0x9e3779b97f4a7c15
)

// A hasher takes fields and keeps them apart.
type hasher uint64

func (h hasher) byte(b byte) hasher { return (h ^ hasher(b)) * fnvPrime }

// field hashes the bytes of a field and the separator behind it.
func (h hasher) field(s string) hasher {
	for i := range len(s) {
		h = h.byte(s[i])
	}
	return h.byte(0xff)
}

// number hashes a field of four bytes, the greatest first.
func (h hasher) number(n uint32) hasher {
	return h.byte(byte(n >> 24)).byte(byte(n >> 16)).byte(byte(n >> 8)).byte(byte(n)).byte(0xff)
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// hash of a shard. Its owner's names are hashed once for all its shards.
func (o *owner) hash(shard uint32) uint64 {
	h := o.names.number(shard)
	if o.cache {
		h = h.field("cache")
	}
	return mix(uint64(h))
}

// hashNode is the hash of a node id.
func hashNode(id string) uint64 { return mix(uint64(hasher(fnvBasis).field(id))) }

// score says how well a node suits a shard; the highest wins. Both are hashed
// by themselves and then mixed: a hash of the two together spreads badly.
func score(shard, node uint64) uint64 {
	return mix(shard*golden ^ bits.RotateLeft64(node, 32))
}
