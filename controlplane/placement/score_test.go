package placement

import "testing"

// The vectors of control plane 7.2.
func TestScoresAreThoseOfTheSpecification(t *testing.T) {
	if f := uint64(hasher(fnvBasis).field("broker-a")); f != 0x079be9a83709e363 {
		t.Errorf("F(broker-a) is %016x", f)
	}
	if m := hashNode("broker-a"); m != 0x0733a4adfeea988b {
		t.Errorf("M(F(broker-a)) is %016x", m)
	}
	for _, v := range []struct {
		shard uint32
		cache bool
		node  string
		want  uint64
	}{
		{0, false, "broker-a", 0xea6872065cc01d57},
		{0, false, "broker-b", 0x807d11bc5e33cafa},
		{0, false, "broker-c", 0x09b8aabed3ecd7ae},
		{0, true, "broker-a", 0x5eb64f74261c9266},
		{1, false, "broker-a", 0x66f2aac5bc402163},
	} {
		o := owner{names: hasher(fnvBasis).field("t1").field("ns").field("orders"), cache: v.cache}
		if got := score(o.hash(v.shard), hashNode(v.node)); got != v.want {
			t.Errorf("shard %d, cache %v, %s: %016x, want %016x", v.shard, v.cache, v.node, got, v.want)
		}
	}
}
