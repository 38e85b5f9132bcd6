package catalog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/felixlog/felix/internal/auth"
)

// A Target is what a catalog is applied to. Removing what is not there is never
// asked for, nor adding what is, except a stream whose retention changed. A
// removed tenant or namespace takes with it all that is in it.
type Target interface {
	AddTenant(tenant string) error
	RemoveTenant(tenant string) error
	// SetKeys replaces the keys that verify the tenant's tokens; none means
	// that no token is accepted.
	SetKeys(tenant string, keys []auth.Key) error
	AddNamespace(tenant, namespace string) error
	RemoveNamespace(tenant, namespace string) error
	AddStream(tenant, namespace string, s Stream) error
	RemoveStream(tenant, namespace, stream string) error
	AddCache(tenant, namespace string, c Cache) error
	RemoveCache(tenant, namespace, cache string) error
}

// applied is what a target holds: a catalog by name, step by step.
type applied map[string]*appliedTenant

type appliedTenant struct {
	keys       []auth.Key
	namespaces map[string]*appliedNamespace
}

type appliedNamespace struct {
	streams map[string]Stream
	caches  map[string]Cache
}

// conflicts names what next would change and cannot: the settings of streams
// and caches that exist.
func (a applied) conflicts(next *Catalog) error {
	var faults []error
	for _, t := range next.Tenants {
		if a[t.Name] == nil {
			continue
		}
		for _, ns := range t.Namespaces {
			have := a[t.Name].namespaces[ns.Name]
			if have == nil {
				continue
			}
			for _, s := range ns.Streams {
				if old, exists := have.streams[s.Name]; exists && old.fixed() != s.fixed() {
					faults = append(faults, fixed("stream", t.Name, ns.Name, s.Name, old.settings(), s.settings()))
				}
			}
			for _, c := range ns.Caches {
				if old, exists := have.caches[c.Name]; exists && old != c {
					faults = append(faults, fixed("cache", t.Name, ns.Name, c.Name, old.settings(), c.settings()))
				}
			}
		}
	}
	return errors.Join(faults...)
}

// fixed is the stream without what may change while it exists.
func (s Stream) fixed() Stream {
	s.Retention = Retention{}
	return s
}

func (c Cache) settings() string {
	text := fmt.Sprintf("%d shards", c.Shards)
	if c.Backing != "" {
		text += " " + string(c.Backing)
	}
	return text
}

func (s Stream) settings() string {
	text := fmt.Sprintf("%d shards, routing %s", s.Shards, s.Routing)
	if s.Durable {
		text += ", durable"
	}
	if s.QueuePolicy != "" {
		text += ", queue policy " + string(s.QueuePolicy)
	}
	return text
}

func fixed(kind, tenant, namespace, name, old, changed string) error {
	return fmt.Errorf("%s %s/%s/%s has %s, which is fixed while it exists, and cannot get %s: remove it first, or use another name",
		kind, tenant, namespace, name, old, changed)
}

// A change counts what was done to a target.
type change struct {
	added, removed int
	faults         []error
}

// did records the outcome of one step and says whether it was done.
func (c *change) did(count *int, err error, what string, names ...string) bool {
	if err != nil {
		path := what
		for i, name := range names {
			path += [...]string{" ", "/", "/"}[i] + name
		}
		c.faults = append(c.faults, fmt.Errorf("%s: %w", path, err))
		return false
	}
	*count++
	return true
}

// apply makes target hold next: first all removals, then all additions. A step
// that fails is told and left out, with what depends on it; the rest is done.
func (a applied) apply(next *Catalog, target Target) *change {
	c := &change{}
	a.remove(next, target, c)
	for _, t := range next.Tenants {
		have := a[t.Name]
		if have == nil {
			if !c.did(&c.added, target.AddTenant(t.Name), "add tenant", t.Name) {
				continue
			}
			have = &appliedTenant{namespaces: make(map[string]*appliedNamespace)}
			a[t.Name] = have
		}
		if !slices.EqualFunc(have.keys, t.Keys, sameKey) {
			if c.did(&c.added, target.SetKeys(t.Name, t.Keys), "set keys of tenant", t.Name) {
				have.keys = t.Keys
			}
		}
		for _, ns := range t.Namespaces {
			have.add(t.Name, ns, target, c)
		}
	}
	return c
}

func sameKey(a, b auth.Key) bool { return a.ID == b.ID && a.Public.Equal(b.Public) }

func (t *appliedTenant) add(tenant string, ns Namespace, target Target, c *change) {
	have := t.namespaces[ns.Name]
	if have == nil {
		if !c.did(&c.added, target.AddNamespace(tenant, ns.Name), "add namespace", tenant, ns.Name) {
			return
		}
		have = &appliedNamespace{streams: make(map[string]Stream), caches: make(map[string]Cache)}
		t.namespaces[ns.Name] = have
	}
	for _, s := range ns.Streams {
		old, exists := have.streams[s.Name]
		if exists && old == s {
			continue
		}
		if c.did(&c.added, target.AddStream(tenant, ns.Name, s), "add stream", tenant, ns.Name, s.Name) {
			have.streams[s.Name] = s
		}
	}
	for _, cache := range ns.Caches {
		if _, exists := have.caches[cache.Name]; !exists && c.did(&c.added, target.AddCache(tenant, ns.Name, cache), "add cache", tenant, ns.Name, cache.Name) {
			have.caches[cache.Name] = cache
		}
	}
}

// remove takes out of the target what next does not have. A tenant that goes
// loses its keys first: nobody authenticates to what is being taken apart.
func (a applied) remove(next *Catalog, target Target, c *change) {
	wanted := make(map[string]Tenant)
	for _, t := range next.Tenants {
		wanted[t.Name] = t
	}
	for _, name := range sorted(a) {
		t, stays := wanted[name]
		if stays {
			a[name].remove(t, target, c)
			continue
		}
		if len(a[name].keys) > 0 {
			if !c.did(&c.removed, target.SetKeys(name, nil), "remove keys of tenant", name) {
				continue
			}
			a[name].keys = nil
		}
		if c.did(&c.removed, target.RemoveTenant(name), "remove tenant", name) {
			delete(a, name)
		}
	}
}

func (t *appliedTenant) remove(next Tenant, target Target, c *change) {
	wanted := make(map[string]Namespace)
	for _, ns := range next.Namespaces {
		wanted[ns.Name] = ns
	}
	for _, name := range sorted(t.namespaces) {
		ns, stays := wanted[name]
		if stays {
			t.namespaces[name].remove(next.Name, ns, target, c)
		} else if c.did(&c.removed, target.RemoveNamespace(next.Name, name), "remove namespace", next.Name, name) {
			delete(t.namespaces, name)
		}
	}
}

func (n *appliedNamespace) remove(tenant string, next Namespace, target Target, c *change) {
	for _, name := range sorted(n.streams) {
		stays := slices.ContainsFunc(next.Streams, func(s Stream) bool { return s.Name == name })
		if !stays && c.did(&c.removed, target.RemoveStream(tenant, next.Name, name), "remove stream", tenant, next.Name, name) {
			delete(n.streams, name)
		}
	}
	for _, name := range sorted(n.caches) {
		stays := slices.ContainsFunc(next.Caches, func(c Cache) bool { return c.Name == name })
		if !stays && c.did(&c.removed, target.RemoveCache(tenant, next.Name, name), "remove cache", tenant, next.Name, name) {
			delete(n.caches, name)
		}
	}
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
