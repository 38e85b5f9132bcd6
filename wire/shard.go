package wire

// A Routing is how a stream maps keys to shards; it is chosen when the stream
// is made and never changes (wire 14).
type Routing uint8

const (
	// Modulo is the hash modulo the shard count: the default, and what caches
	// and counters use.
	Modulo Routing = 0
	// JumpHash is the jump consistent hash of Lamping and Veach.
	JumpHash Routing = 1
)

func (r Routing) String() string {
	switch r {
	case Modulo:
		return "modulo"
	case JumpHash:
		return "jump_hash"
	}
	return "invalid"
}

// RoutingByName is the routing with that JSON name, and whether it is known.
func RoutingByName(name string) (Routing, bool) {
	switch name {
	case "modulo":
		return Modulo, true
	case "jump_hash":
		return JumpHash, true
	}
	return 0, false
}

// ShardOf is the shard of a key in a stream or cache of that many shards
// (wire 14). Without a key, and with fewer than two shards, it is 0.
func ShardOf(key []byte, keyed bool, shards uint32, r Routing) uint32 {
	if !keyed || shards <= 1 {
		return 0
	}
	h := HashKey(key)
	if r == JumpHash {
		return jump(h, shards)
	}
	return uint32(h % uint64(shards))
}

// HashKey is 64-bit FNV-1a with a finaliser that spreads its low bits.
func HashKey(key []byte) uint64 {
	h := fnv1a(key)
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

func fnv1a(key []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range key {
		h ^= uint64(b)
		h *= 0x00000100000001b3
	}
	return h
}

// jump keeps the published arithmetic: the division first, both operations in
// double precision, each rounded on its own.
func jump(h uint64, shards uint32) uint32 {
	b, j := int64(-1), int64(0)
	for j < int64(shards) {
		b = j
		h = h*2862933555777941757 + 1
		step := float64(1<<31) / float64(h>>33+1)
		j = int64(float64(b+1) * step)
	}
	return uint32(b)
}
