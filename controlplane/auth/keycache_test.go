package auth

import (
	"fmt"
	"testing"
	"time"

	token "github.com/felixlog/felix/internal/auth"
)

// TestKeyCacheIsBounded: what must be read again leaves first.
func TestKeyCacheIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newKeyCache(nil, func() time.Time { return now }, nil)
	keep := func(i int) {
		c.keep(fmt.Sprint(i), &keyring{loaded: now, public: []token.Key{{ID: "k"}}}, now)
	}
	for i := range maxKeyrings / 2 {
		keep(i)
	}
	now = now.Add(keyTTL)
	for i := range maxKeyrings {
		keep(maxKeyrings + i)
	}
	if len(c.rings) != maxKeyrings || c.rings["0"] != nil || c.rings[fmt.Sprint(maxKeyrings)] == nil {
		t.Fatalf("%d keyrings, the outdated ones are there: %v", len(c.rings), c.rings["0"] != nil)
	}
	keep(-1)
	if len(c.rings) != maxKeyrings || c.rings["-1"] == nil {
		t.Fatalf("%d keyrings, the new one is there: %v", len(c.rings), c.rings["-1"] != nil)
	}
	c.keep("-1", &keyring{loaded: now}, now)
	if c.rings["-1"] != nil {
		t.Error("a tenant without keys is kept")
	}
}
