package measure

import "testing"

func TestKeysHaveOneLengthAndAreVisited(t *testing.T) {
	keys := NewKeys(1000)
	seen := make(map[string]int)
	w := keys.Walk(2)
	for range 20_000 {
		seen[w.Next(0)]++
		seen[w.Next(1)]++
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 keys were visited", len(seen))
	}
	for k, n := range seen {
		if len(k) != keyLength {
			t.Fatalf("key %q has %d bytes", k, len(k))
		}
		if n > 200 { // 40 on average
			t.Errorf("key %q was visited %d times of 40000", k, n)
		}
	}
}
