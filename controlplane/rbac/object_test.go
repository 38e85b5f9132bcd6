package rbac

import (
	"strings"
	"testing"
)

func mustObject(t testing.TB, text string) Object {
	t.Helper()
	o, err := ParseObject(text)
	if err != nil {
		t.Fatalf("ParseObject(%q): %v", text, err)
	}
	return o
}

func TestParseObject(t *testing.T) {
	for text, want := range map[string]Object{
		"cluster:*":           Cluster(),
		"node:broker-1":       Node("broker-1"),
		"tenant:t1":           Tenant("t1"),
		"namespace:t1/n":      Namespace("t1", "n"),
		"namespace:t1/*":      Namespace("t1", Any),
		"stream:t1/n/s":       Stream("t1", "n", "s"),
		"stream:t1/n/*":       Stream("t1", "n", Any),
		"stream:t1/*/*":       Stream("t1", Any, Any),
		"cache:t1/n/c":        Cache("t1", "n", "c"),
		"cache:t1/*/*":        Cache("t1", Any, Any),
		"cache:t1/n/c/key":    {Kind: KindCacheKey, Tenant: "t1", Namespace: "n", Name: "c", Item: "key"},
		"cache:t1/n/c/user/*": {Kind: KindCacheKey, Tenant: "t1", Namespace: "n", Name: "c", Item: "user/*"},
		"cache:t1/n/c/a:b c":  {Kind: KindCacheKey, Tenant: "t1", Namespace: "n", Name: "c", Item: "a:b c"},
		"group:t1/n/s/g":      Group("t1", "n", "s", "g"),
		"tenant:größe":        Tenant("größe"),
	} {
		got, err := ParseObject(text)
		if err != nil || got != want {
			t.Errorf("ParseObject(%q) = %+v, %v, want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q is written back as %q", text, got)
		}
	}
}

func TestParseObjectRefuses(t *testing.T) {
	for _, text := range []string{
		"", "cluster", "cluster:", "cluster:**", "cluster:all", "Cluster:*", "*", "*:*",
		"node:", "node:*", "node:a*", "node:a/b", "node:a:b",
		"tenant:", "tenant:*", "tenant:a/b", "tenant:a\n",
		"namespace:", "namespace:t1", "namespace:t1/", "namespace:/n", "namespace:*/n", "namespace:t1/n/x", "namespace:t1/n*",
		"stream:t1", "stream:t1/n", "stream:t1/n/", "stream:t1//s", "stream:/n/s", "stream:t1/*/orders", "stream:*/*/*",
		"stream:t1/n/s/x", "stream:t1/n/s*", "stream:t1/n/a:b", "stream:t1/n:x/s",
		"cache:t1/*/c", "cache:t1/n", "cache:t1/n/c/", "cache:t1/n/c/*", "cache:t1/n/c/a*b", "cache:t1/n/*/key", "cache:t1/*/*/key",
		"cache:t1/n/c/a\x00b",
		"group:t1/n/s", "group:t1/n/s/", "group:t1/n/s/*", "group:t1/n/*/g", "group:t1/n/s/g/h",
		"topic:t1/n/s", "stream:t1/n/\xff", "tenant:" + strings.Repeat("x", MaxObject),
	} {
		if o, err := ParseObject(text); err == nil || o != (Object{}) {
			t.Errorf("ParseObject(%q) = %+v, %v, want a refusal", text, o, err)
		}
	}
}

// every is one object of each kind and breadth of two tenants.
var every = []string{
	"cluster:*", "node:a", "node:b",
	"tenant:t1", "tenant:t2",
	"namespace:t1/n", "namespace:t1/m", "namespace:t1/*", "namespace:t2/n",
	"stream:t1/n/s", "stream:t1/n/x", "stream:t1/n/*", "stream:t1/m/s", "stream:t1/*/*", "stream:t2/n/s",
	"cache:t1/n/s", "cache:t1/n/x", "cache:t1/n/*", "cache:t1/*/*", "cache:t2/n/s",
	"cache:t1/n/s/k", "cache:t1/n/s/k*", "cache:t1/n/s/kk", "cache:t1/n/x/k",
	"group:t1/n/s/g", "group:t1/n/s/h", "group:t1/n/x/g", "group:t2/n/s/g",
}

// TestContains walks every pair of [every] (acceptance test 25.8): what is not
// listed is not contained.
func TestContains(t *testing.T) {
	contains := map[string]string{
		"cluster:*":       "cluster:* node:a node:b",
		"node:a":          "node:a",
		"node:b":          "node:b",
		"namespace:t1/n":  "namespace:t1/n stream:t1/n/s stream:t1/n/x stream:t1/n/* cache:t1/n/s cache:t1/n/x cache:t1/n/* cache:t1/n/s/k cache:t1/n/s/k* cache:t1/n/s/kk cache:t1/n/x/k group:t1/n/s/g group:t1/n/s/h group:t1/n/x/g",
		"namespace:t1/m":  "namespace:t1/m stream:t1/m/s",
		"namespace:t2/n":  "namespace:t2/n stream:t2/n/s cache:t2/n/s group:t2/n/s/g",
		"stream:t1/n/s":   "stream:t1/n/s group:t1/n/s/g group:t1/n/s/h",
		"stream:t1/n/x":   "stream:t1/n/x group:t1/n/x/g",
		"stream:t1/n/*":   "stream:t1/n/s stream:t1/n/x stream:t1/n/* group:t1/n/s/g group:t1/n/s/h group:t1/n/x/g",
		"stream:t1/m/s":   "stream:t1/m/s",
		"stream:t1/*/*":   "stream:t1/n/s stream:t1/n/x stream:t1/n/* stream:t1/m/s stream:t1/*/* group:t1/n/s/g group:t1/n/s/h group:t1/n/x/g",
		"stream:t2/n/s":   "stream:t2/n/s group:t2/n/s/g",
		"cache:t1/n/s":    "cache:t1/n/s cache:t1/n/s/k cache:t1/n/s/k* cache:t1/n/s/kk",
		"cache:t1/n/x":    "cache:t1/n/x cache:t1/n/x/k",
		"cache:t1/n/*":    "cache:t1/n/s cache:t1/n/x cache:t1/n/* cache:t1/n/s/k cache:t1/n/s/k* cache:t1/n/s/kk cache:t1/n/x/k",
		"cache:t1/*/*":    "cache:t1/n/s cache:t1/n/x cache:t1/n/* cache:t1/*/* cache:t1/n/s/k cache:t1/n/s/k* cache:t1/n/s/kk cache:t1/n/x/k",
		"cache:t2/n/s":    "cache:t2/n/s",
		"cache:t1/n/s/k":  "cache:t1/n/s/k",
		"cache:t1/n/s/k*": "cache:t1/n/s/k cache:t1/n/s/k* cache:t1/n/s/kk",
		"cache:t1/n/s/kk": "cache:t1/n/s/kk",
		"cache:t1/n/x/k":  "cache:t1/n/x/k",
		"group:t1/n/s/g":  "group:t1/n/s/g",
		"group:t1/n/s/h":  "group:t1/n/s/h",
		"group:t1/n/x/g":  "group:t1/n/x/g",
		"group:t2/n/s/g":  "group:t2/n/s/g",
	}
	// A tenant, and all its namespaces, contain all that is in it.
	for _, text := range every {
		if _, path, _ := strings.Cut(text, ":"); strings.HasPrefix(path, "t1") {
			contains["tenant:t1"] += " " + text
			if text != "tenant:t1" {
				contains["namespace:t1/*"] += " " + text
			}
		} else if strings.HasPrefix(path, "t2") {
			contains["tenant:t2"] += " " + text
		}
	}
	for _, scope := range every {
		inside := make(map[string]bool)
		for _, text := range strings.Fields(contains[scope]) {
			inside[text] = true
		}
		if len(inside) == 0 {
			t.Fatalf("nothing is expected in %s", scope)
		}
		for _, target := range every {
			got := mustObject(t, scope).Contains(mustObject(t, target))
			if got != inside[target] {
				t.Errorf("%s contains %s: %v, want %v", scope, target, got, inside[target])
			}
		}
	}
}

func TestNoTenantScopeReachesTheCluster(t *testing.T) {
	for _, text := range every {
		o := mustObject(t, text)
		if o.Kind == KindCluster || o.Kind == KindNode {
			for _, other := range every {
				if p := mustObject(t, other); p.Tenant != "" && (o.Contains(p) || p.Contains(o)) {
					t.Errorf("%s and %s are on two sides of the boundary", o, p)
				}
			}
		}
	}
	if (Object{}).Contains(Object{}) || Tenant("").Contains(Tenant("")) || Tenant("").Contains(Cluster()) {
		t.Error("an object that nobody made contains something")
	}
}

func FuzzParseObject(f *testing.F) {
	for _, text := range every {
		f.Add(text)
	}
	f.Add("stream:t1/*/orders")
	f.Add("cache:t1/n/c/a/*")
	f.Add("tenant:\xff")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseObject(text)
		if err != nil {
			if o != (Object{}) {
				t.Fatalf("a refusal of %q comes with %+v", text, o)
			}
			return
		}
		if o.String() != text {
			t.Fatalf("%q is written back as %q", text, o)
		}
		if !o.Contains(o) {
			t.Fatalf("%q does not contain itself", text)
		}
		if strings.HasPrefix(text, "tenant:*") || strings.HasPrefix(text, "node:*") {
			t.Fatalf("%q was taken", text)
		}
	})
}
