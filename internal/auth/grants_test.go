package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func compile(t testing.TB, perms ...string) *Grants {
	t.Helper()
	g, err := CompileGrants("t", perms)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNamedChecks(t *testing.T) {
	type check struct {
		name string
		ask  func(*Grants) bool
	}
	var (
		publish    = check{"publish n/s", func(g *Grants) bool { return g.CanPublish("n", "s") }}
		publishS2  = check{"publish n/s2", func(g *Grants) bool { return g.CanPublish("n", "s2") }}
		publishX   = check{"publish x/s", func(g *Grants) bool { return g.CanPublish("x", "s") }}
		subscribe  = check{"subscribe n/s", func(g *Grants) bool { return g.CanSubscribe("n", "s") }}
		manage     = check{"manage n/s", func(g *Grants) bool { return g.CanManageStream("n", "s") }}
		consume    = check{"consume n/s/g", func(g *Grants) bool { return g.CanConsumeGroup("n", "s", "g") }}
		consumeG2  = check{"consume n/s/g2", func(g *Grants) bool { return g.CanConsumeGroup("n", "s", "g2") }}
		consumeS2  = check{"consume n/s2/g", func(g *Grants) bool { return g.CanConsumeGroup("n", "s2", "g") }}
		groupAdmin = check{"manage group n/s/g", func(g *Grants) bool { return g.CanManageGroup("n", "s", "g") }}
		groupAdm2  = check{"manage group n/s/g2", func(g *Grants) bool { return g.CanManageGroup("n", "s", "g2") }}
		viewNode   = check{"view node", func(g *Grants) bool { return g.CanViewNode() }}
	)
	all := []check{publish, publishS2, publishX, subscribe, manage, consume, consumeG2, consumeS2, groupAdmin, groupAdm2, viewNode}
	for _, tt := range []struct {
		perms []string
		yes   []check
	}{
		{nil, nil},
		{[]string{"stream.publish:stream:t/n/s"}, []check{publish}},
		{[]string{"stream.publish:stream:t/n/s*"}, []check{publish, publishS2}},
		{[]string{"stream.publish:stream:t/*/*"}, []check{publish, publishS2, publishX}},
		{[]string{"stream.publish:*"}, []check{publish, publishS2, publishX}},
		{[]string{"stream.publish:stream:T/n/s", "stream.publish:stream:t/N/s", "stream.publish:Stream:t/n/s"}, nil},
		{[]string{"stream.publish:stream:other/n/s"}, nil},
		{[]string{"stream.publish:stream:t/n"}, nil},
		{[]string{"stream.publish:cache:t/n/s", "stream.publish:group:t/n/s/g"}, nil},
		// Reading a stream lets its groups be consumed, managing it lets them be managed.
		{[]string{"stream.subscribe:stream:t/n/s"}, []check{subscribe, consume, consumeG2}},
		{[]string{"stream.manage:stream:t/n/s"}, []check{manage, groupAdmin, groupAdm2}},
		{[]string{"group.consume:stream:t/n/s"}, []check{consume, consumeG2}},
		{[]string{"group.manage:stream:t/n/s"}, []check{groupAdmin, groupAdm2}},
		// A grant on a group of a stream leaves only the granted groups of that stream.
		{[]string{"group.consume:group:t/n/s/g"}, []check{consume}},
		{[]string{"group.consume:group:t/n/s/g", "stream.subscribe:stream:t/n/*"}, []check{subscribe, consume, consumeS2}},
		{[]string{"group.consume:group:t/n/s/g", "group.consume:stream:t/n/s"}, []check{consume}},
		{[]string{"group.consume:group:t/n/s/g", "group.consume:group:t/n/s/g2"}, []check{consume, consumeG2}},
		{[]string{"group.consume:group:t/n/s/other", "stream.subscribe:stream:t/n/s"}, []check{subscribe}},
		{[]string{"group.consume:group:t/n/*", "stream.subscribe:stream:t/x/s"}, []check{consume, consumeG2, consumeS2}},
		{[]string{"group.consume:group:t/*/s/g", "stream.subscribe:stream:t/n/*"}, []check{subscribe, consume, consumeS2}},
		{[]string{"group.consume:*"}, []check{consume, consumeG2, consumeS2}},
		// Scoping is per action.
		{[]string{"group.consume:group:t/n/s/g", "stream.manage:stream:t/n/s"}, []check{manage, consume, groupAdmin, groupAdm2}},
		{[]string{"group.manage:group:t/n/s/g", "stream.subscribe:stream:t/n/s"}, []check{subscribe, consume, consumeG2, groupAdmin}},
		// Reading by a group: object is not a thing.
		{[]string{"stream.subscribe:group:t/n/s/g"}, nil},
		// One spelling opens the node.
		{[]string{"node.view:cluster:*"}, []check{viewNode}},
		{[]string{"node.view:*", "node.view:cluster:", "node.view:node:n1", "node.manage:cluster:*"}, nil},
		// The control plane's actions give nothing here.
		{[]string{"tenant.manage:tenant:t", "ns.manage:namespace:t/n", "rbac.view:tenant:t", "cache.manage:cache:t/n/c"}, nil},
	} {
		g := compile(t, tt.perms...)
		for _, c := range all {
			want := false
			for _, yes := range tt.yes {
				want = want || yes.name == c.name
			}
			if got := c.ask(g); got != want {
				t.Errorf("%q: %s: %v, want %v", tt.perms, c.name, got, want)
			}
		}
	}
}

// TestSlashInANameIsNeverAllowed: "a/b" in namespace "n" and "b" in namespace
// "n/a" would be one object.
func TestSlashInANameIsNeverAllowed(t *testing.T) {
	g := compile(t, "stream.publish:*", "stream.subscribe:*", "stream.manage:*", "cache.read:*", "cache.write:*", "group.consume:*", "group.manage:*")
	for name, allowed := range map[string]bool{
		"publish namespace":  g.CanPublish("n/a", "s"),
		"publish stream":     g.CanPublish("n", "a/s"),
		"subscribe":          g.CanSubscribe("n/a", "s"),
		"manage":             g.CanManageStream("n", "a/s"),
		"read":               g.CanReadCache("n/a", "c", "k"),
		"write":              g.CanWriteCache("n", "a/c", "k"),
		"watch":              g.CanWatchPrefix("n/a", "c", ""),
		"scope":              g.CacheReadScope("n/a", "c") != ScopeNone,
		"consume group":      g.CanConsumeGroup("n", "s", "a/g"),
		"manage group":       g.CanManageGroup("n/a", "s", "g"),
		"consume group of /": g.CanConsumeGroup("n", "a/s", "g"),
	} {
		if allowed {
			t.Errorf("%s: a name with a slash is allowed", name)
		}
	}
	if !g.CanReadCache("n", "c", "a/b:c*") {
		t.Error("a cache key may hold slashes, colons and stars")
	}
}

func TestCacheKeys(t *testing.T) {
	for _, tt := range []struct {
		perm   string
		scope  Scope
		keys   map[string]bool
		prefix map[string]bool
	}{
		{"cache.read:cache:t/n/c", ScopeAll, map[string]bool{"": true, "k": true, "a/b": true}, map[string]bool{"": true, "k": true}},
		{"cache.read:cache:t/n/*", ScopeAll, map[string]bool{"k": true}, map[string]bool{"": true}},
		{"cache.read:cache:t/n/c/*", ScopeAll, map[string]bool{"k": true, "a/b": true}, map[string]bool{"": true, "k": true}},
		{"cache.read:cache:t/n/c*", ScopeAll, map[string]bool{"k": true}, map[string]bool{"": true}},
		{"cache.read:cache:t/n/c/k", ScopeKeys, map[string]bool{"k": true, "kk": false, "": false}, map[string]bool{"": false, "k": false}},
		{"cache.read:cache:t/n/c/user:*", ScopeKeys,
			map[string]bool{"user:": true, "user:1": true, "user:1/x": true, "user": false, "xuser:1": false, "User:1": false},
			map[string]bool{"": false, "user": false, "user:": true, "user:1": true}},
		{"cache.read:cache:t/n/c/a*z", ScopeKeys, map[string]bool{"az": true, "abz": true, "abzz": true, "ab": false}, map[string]bool{"a": false, "abz": false}},
		{"cache.read:cache:t/n/c/a/b", ScopeKeys, map[string]bool{"a/b": true, "a": false}, nil},
		{"cache.read:cache:t/n/d", ScopeNone, map[string]bool{"k": false}, map[string]bool{"": false}},
		{"cache.read:cache:t/n/d/k", ScopeNone, map[string]bool{"k": false}, nil},
		{"cache.read:cache:t/n", ScopeNone, map[string]bool{"k": false}, nil},
		{"cache.read:cache:other/n/c", ScopeNone, map[string]bool{"k": false}, nil},
		{"cache.write:cache:t/n/c", ScopeNone, map[string]bool{"k": false}, map[string]bool{"": false}},
	} {
		g := compile(t, tt.perm)
		if got := g.CacheReadScope("n", "c"); got != tt.scope {
			t.Errorf("%s: scope %d, want %d", tt.perm, got, tt.scope)
		}
		for key, want := range tt.keys {
			if got := g.CanReadCache("n", "c", key); got != want {
				t.Errorf("%s: read %q: %v, want %v", tt.perm, key, got, want)
			}
		}
		for prefix, want := range tt.prefix {
			if got := g.CanWatchPrefix("n", "c", prefix); got != want {
				t.Errorf("%s: watch %q: %v, want %v", tt.perm, prefix, got, want)
			}
		}
	}
	writer := compile(t, "cache.write:cache:t/n/c/k")
	if !writer.CanWriteCache("n", "c", "k") || writer.CanWriteCache("n", "c", "l") || writer.CanReadCache("n", "c", "k") {
		t.Error("a write grant on one key allows that, and only that")
	}
	if writer.CacheWriteScope("n", "c") != ScopeKeys || writer.CacheReadScope("n", "c") != ScopeNone {
		t.Error("scopes follow the action")
	}
}

// TestCacheScopeAgreesWithKeys checks that a caller who decides by scope never
// decides otherwise than one who asks for every key.
func TestCacheScopeAgreesWithKeys(t *testing.T) {
	object := rapid.StringMatching(`cache:t/[nm*]?(/[cd*]{0,2})?(/[kl/*]{0,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		perms := rapid.SliceOfN(rapid.Map(object, func(o string) string { return "cache.read:" + o }), 0, 3).Draw(t, "perms")
		g, err := CompileGrants("t", perms)
		if err != nil {
			t.Fatal(err)
		}
		all, some := true, false
		everyText("kl/z", 4, func(key string) {
			can := g.CanReadCache("n", "c", key)
			all = all && can
			some = some || can && key != ""
		})
		switch scope := g.CacheReadScope("n", "c"); {
		case scope == ScopeAll && !all:
			t.Fatalf("%q: scope is all, yet some key is refused", perms)
		case scope == ScopeNone && some:
			t.Fatalf("%q: scope is none, yet some key is allowed", perms)
		}
	})
}

// TestGroupScopeAgreesWithDefinition: a stream is scoped exactly when some
// group name exists that the granted object fits.
func TestGroupScopeAgreesWithDefinition(t *testing.T) {
	object := rapid.StringMatching(`[ab/*]{0,7}`)
	stream := rapid.StringMatching(`[ab]{0,2}/[ab]{0,2}/`)
	rapid.Check(t, func(t *rapid.T) {
		object, stream := object.Draw(t, "object"), stream.Draw(t, "stream")
		want := false
		everyText("ab", 7, func(group string) {
			want = want || group != "" && fits(object, stream+group)
		})
		var scope groupScope
		scope.add(object)
		if got := scope.streams.match([]byte(stream)); got != want {
			t.Fatalf("%q names a group of %q: %v, want %v", object, stream, got, want)
		}
	})
}

func TestUnknownPermissionRefusesAll(t *testing.T) {
	for _, perm := range []string{
		"stream.fly:stream:t/n/s", "Stream.publish:stream:t/n/s", "stream.publish", "stream.publish:", ":stream:t/n/s", "", "unknown:x", "stream.publish stream:t/n/s",
	} {
		_, err := CompileGrants("t", []string{"stream.publish:stream:t/n/s", perm})
		var refused *PermissionError
		if !errors.As(err, &refused) || refused.Permission != perm {
			t.Errorf("%q: %v, want a PermissionError that names it", perm, err)
		}
	}
	long := &PermissionError{Permission: strings.Repeat("x", 10_000)}
	if len(long.Error()) > 300 {
		t.Errorf("a long permission makes an error text of %d bytes", len(long.Error()))
	}
}

func TestAllows(t *testing.T) {
	g := compile(t, "cache.manage:cache:t/n/*", "stream.publish:stream:t/n/s")
	for _, tt := range []struct {
		action Action
		object string
		want   bool
	}{
		{CacheManage, "cache:t/n/c", true},
		{CacheRead, "cache:t/n/c", false},
		{StreamPublish, "stream:t/n/s", true},
		{StreamPublish, "stream:t/n/s2", false},
		{0, "stream:t/n/s", false},
		{actionCount, "stream:t/n/s", false},
		{255, "stream:t/n/s", false},
	} {
		if got := g.Allows(tt.action, tt.object); got != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.action, tt.object, got, tt.want)
		}
	}
}

// TestAllowsAgreesWithDefinition compares whole grants, duplicates and exact
// look-ups included, with the definition.
func TestAllowsAgreesWithDefinition(t *testing.T) {
	object := rapid.StringMatching(`stream:t/[ab/*]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		objects := rapid.SliceOfN(object, 0, 6).Draw(t, "objects")
		asked := "stream:t/" + textGen.Draw(t, "asked")
		var perms []string
		want := false
		for _, o := range objects {
			perms = append(perms, "stream.publish:"+o)
			want = want || fits(o, asked)
		}
		g, err := CompileGrants("t", perms)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Allows(StreamPublish, asked); got != want {
			t.Fatalf("%q allow %q: %v, want %v", objects, asked, got, want)
		}
	})
}

func TestActionNames(t *testing.T) {
	for a := Action(1); a < actionCount; a++ {
		parsed, ok := ParseAction(a.String())
		if !ok || parsed != a {
			t.Errorf("%d is written %q and read as %d, %v", a, a, parsed, ok)
		}
	}
	if Action(0).String() != "unknown" || Action(200).String() != "unknown" {
		t.Error("an action out of range has a name")
	}
}

func TestChecksDoNotAllocate(t *testing.T) {
	g := compile(t, "stream.publish:stream:t/n/*", "stream.subscribe:stream:t/*/s*", "cache.read:cache:t/n/c/user:*",
		"cache.write:cache:t/n/c", "group.consume:group:t/n/s/g*")
	key := "user:" + strings.Repeat("1", 300)
	var sink bool
	if n := testing.AllocsPerRun(100, func() {
		sink = g.CanPublish("n", "s") && g.CanSubscribe("n", "s1") && g.CanReadCache("n", "c", key) &&
			g.CanWriteCache("n", "c", key) && g.CanConsumeGroup("n", "s", "g1") && g.CanWatchPrefix("n", "c", "user:") &&
			g.CacheReadScope("n", "c") == ScopeKeys && g.Allows(StreamPublish, "stream:t/n/s")
	}); n != 0 {
		t.Errorf("checks allocate %v times", n)
	}
	if !sink {
		t.Error("a check of the allocation test was refused")
	}
	if !g.CanReadCache("n", "c", "user:"+strings.Repeat("1", 65_000)) {
		t.Error("a key longer than the stack buffer is refused")
	}
}

func BenchmarkAllows(b *testing.B) {
	many := make([]string, 0, 1000)
	for i := range 1000 {
		many = append(many, fmt.Sprintf("stream.publish:stream:t/n%d/s%d", i%10, i))
	}
	for _, bb := range []struct {
		name  string
		perms []string
	}{
		{"exact", []string{"stream.publish:stream:t/n/s"}},
		{"wildcard", []string{"stream.publish:stream:t/*/*"}},
		{"exact-1000", append(many, "stream.publish:stream:t/n/s")},
	} {
		g := compile(b, bb.perms...)
		b.Run("publish/"+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !g.CanPublish("n", "s") {
					b.Fatal("refused")
				}
			}
		})
	}
	g := compile(b, "cache.read:cache:t/n/c/user:*")
	b.Run("cache-key-prefix", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !g.CanReadCache("n", "c", "user:12345") {
				b.Fatal("refused")
			}
		}
	})
	g = compile(b, "group.consume:group:t/n/s/g*")
	b.Run("group", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !g.CanConsumeGroup("n", "s", "g1") {
				b.Fatal("refused")
			}
		}
	})
}
