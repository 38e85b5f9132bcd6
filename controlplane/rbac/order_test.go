package rbac

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/internal/auth"
)

// Few names, so that objects meet.
var (
	names    = rapid.SampledFrom([]string{"a", "b"})
	segments = rapid.SampledFrom([]string{"a", "b", Any})
	keys     = rapid.SampledFrom([]string{"k", "kk", "k/", "k*", "kk*", "a", "a*"})
)

var objects = rapid.Custom(func(t *rapid.T) Object {
	kind := Kind(rapid.IntRange(1, int(kindCount)-1).Draw(t, "kind"))
	o := Object{Kind: kind}
	switch kind {
	case KindCluster:
		return o
	case KindNode:
		o.Name = names.Draw(t, "node")
		return o
	}
	o.Tenant = names.Draw(t, "tenant")
	switch kind {
	case KindNamespace:
		o.Namespace = segments.Draw(t, "namespace")
	case KindStream, KindCache:
		o.Namespace, o.Name = segments.Draw(t, "namespace"), segments.Draw(t, "name")
		if o.Namespace == Any {
			o.Name = Any
		}
	case KindCacheKey:
		o.Namespace, o.Name, o.Item = names.Draw(t, "namespace"), names.Draw(t, "name"), keys.Draw(t, "key")
	case KindGroup:
		o.Namespace, o.Name, o.Item = names.Draw(t, "namespace"), names.Draw(t, "name"), names.Draw(t, "group")
	}
	return o
})

// TestContainsIsAPartialOrder, and Meet its greatest lower bound.
func TestContainsIsAPartialOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := objects.Draw(t, "a"), objects.Draw(t, "b"), objects.Draw(t, "c")
		if parsed, err := ParseObject(a.String()); err != nil || parsed != a {
			t.Fatalf("%v is read back as %v: %v", a, parsed, err)
		}
		if !a.Contains(a) {
			t.Fatalf("%v does not contain itself", a)
		}
		if a.Contains(b) && b.Contains(a) && a != b {
			t.Fatalf("%v and %v contain each other", a, b)
		}
		if a.Contains(b) && b.Contains(c) && !a.Contains(c) {
			t.Fatalf("%v contains %v contains %v, but not across", a, b, c)
		}
		meet, some := a.Meet(b)
		other, too := b.Meet(a)
		if some != too || meet != other {
			t.Fatalf("%v meets %v in %v, the other way round in %v", a, b, meet, other)
		}
		if some && (!a.Contains(meet) || !b.Contains(meet)) {
			t.Fatalf("%v is not inside both %v and %v", meet, a, b)
		}
		if a.Contains(c) && b.Contains(c) && (!some || !meet.Contains(c)) {
			t.Fatalf("%v and %v contain %v, their meet %v (%v) does not", a, b, c, meet, some)
		}
	})
}

// concrete lists things of a world in which there is a name, "z", that no rule
// knows: what a wildcard covers and an exact name does not.
func concrete() []Object {
	all := []Object{Cluster(), Node("a"), Node("b"), Node("z")}
	for _, tenant := range []string{"a", "b"} {
		all = append(all, Tenant(tenant))
		for _, namespace := range []string{"a", "b", "z"} {
			all = append(all, Namespace(tenant, namespace))
			for _, name := range []string{"a", "b", "z"} {
				all = append(all, Stream(tenant, namespace, name), Cache(tenant, namespace, name),
					Group(tenant, namespace, name, "a"), Group(tenant, namespace, name, "b"), Group(tenant, namespace, name, "z"))
				for _, key := range []string{"k", "kk", "kz", "kkz", "k/", "k/z", "a", "az", "z"} {
					all = append(all, Object{KindCacheKey, tenant, namespace, name, key})
				}
			}
		}
	}
	return all
}

// TestContainsIsWhatIsMatched holds containment against what it stands for: a
// scope contains another exactly if it matches every thing that the other does.
func TestContainsIsWhatIsMatched(t *testing.T) {
	things := concrete()
	rapid.Check(t, func(t *rapid.T) {
		a, b := objects.Draw(t, "a"), objects.Draw(t, "b")
		covered := true
		for _, thing := range things {
			if b.Contains(thing) && !a.Contains(thing) {
				covered = false
			}
		}
		if covered != a.Contains(b) {
			t.Fatalf("%v contains %v: %v, by what they match: %v", a, b, a.Contains(b), covered)
		}
	})
}

// TestBrokersAgree holds containment against the matching of brokers, which
// works on text (wire 17.2).
func TestBrokersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scope := objects.Filter(func(o Object) bool {
			return o.Kind == KindStream || o.Kind == KindCache || o.Kind == KindCacheKey
		}).Draw(t, "scope")
		action := StreamPublish
		if scope.Kind != KindStream {
			action = CacheRead
		}
		perm := Permission{action, scope}
		grants, err := auth.CompileGrants("a", []string{perm.String()})
		if err != nil {
			t.Fatal(err)
		}
		for _, thing := range concrete() {
			if thing.Tenant != "a" {
				continue
			}
			var broker bool
			switch {
			case thing.Kind == KindStream && scope.Kind == KindStream:
				broker = grants.CanPublish(thing.Namespace, thing.Name)
			case thing.Kind == KindCacheKey && scope.Kind != KindStream:
				broker = grants.CanReadCache(thing.Namespace, thing.Name, thing.Item)
			default:
				continue
			}
			if broker != scope.Contains(thing) {
				t.Fatalf("%v over %v: a broker says %v, containment %v", perm, thing, broker, !broker)
			}
		}
	})
}

// TestNarrowNeverWidens, and keeps what was asked for.
func TestNarrowNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var perms []Permission
		for _, o := range rapid.SliceOfN(objects, 1, 4).Draw(t, "objects") {
			for action := range fits {
				if ValidRule(action, o) == nil {
					perms = append(perms, Permission{action, o})
				}
			}
		}
		wanted := rapid.SliceOfN(objects, 1, 3).Draw(t, "wanted")
		narrow := Narrow(perms, nil, wanted)
		for _, p := range narrow {
			if ValidRule(p.Action, p.Object) != nil {
				t.Fatalf("%v is no rule", p)
			}
			if !allowed(perms, p) {
				t.Fatalf("%v came out of %v", p, perms)
			}
			if !inside(wanted, p.Object) {
				t.Fatalf("%v is outside of %v", p, wanted)
			}
		}
		for _, o := range wanted {
			for action := range fits {
				if p := (Permission{action, o}); ValidRule(action, o) == nil && allowed(perms, p) != allowed(narrow, p) {
					t.Fatalf("%v of %v, narrowed to %v: %v", p, perms, wanted, narrow)
				}
			}
		}
		if got := Narrow(perms, []Action{}, nil); len(got) != 0 {
			t.Fatalf("asking for nothing gave %v", got)
		}
	})
}

func allowed(perms []Permission, p Permission) bool {
	for _, q := range perms {
		if q.Action == p.Action && q.Object.Contains(p.Object) {
			return true
		}
	}
	return false
}

func inside(scopes []Object, o Object) bool {
	for _, scope := range scopes {
		if scope.Contains(o) {
			return true
		}
	}
	return false
}

func FuzzParsePermission(f *testing.F) {
	f.Add("stream.publish:stream:t1/n/s")
	f.Add("tenant.manage:namespace:t1/n")
	f.Add("node.view:cluster:*")
	f.Add("rbac.view:")
	f.Add(":::")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePermission(text)
		if err != nil {
			return
		}
		if p.String() != text {
			t.Fatalf("%q is written back as %q", text, p)
		}
		if ValidRule(p.Action, p.Object) != nil {
			t.Fatalf("%q is no rule", text)
		}
		// What the control plane writes, a broker must be able to read.
		if _, err := auth.CompileGrants("t1", []string{text}); err != nil {
			t.Fatalf("a broker refuses %q: %v", strings.ToValidUTF8(text, "?"), err)
		}
	})
}
