package mirror

import (
	"errors"
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// A picture is what the control plane last said, and what it stopped mentioning
// without a word.
type picture struct {
	tenants     map[string]held[model.Tenant]
	namespaces  map[model.NamespaceKey]held[model.Namespace]
	streams     map[model.StreamKey]held[model.Stream]
	caches      map[model.CacheKey]held[model.Cache]
	assignments map[model.ShardKey]model.Assignment

	// graves are tombstones whose data is to be removed, and buried the uids of
	// which it was, as far as the control plane still lists them.
	graves map[grave]model.Tombstone
	buried map[grave]struct{}

	touched touched
	dooms   bool // something is doomed
}

// held is a record; missing says that a snapshot lacked it, and doomed that what
// it was in was deleted, before its own feed was read.
type held[T any] struct {
	rec             T
	missing, doomed bool
}

// A grave names the data of one uid of a stream or cache.
type grave struct {
	kind                         model.ShardKind
	tenant, namespace, name, uid string
}

func graveOf(t model.Tombstone) grave {
	return grave{t.Kind, t.TenantID, t.Namespace, t.Name, t.UID}
}

func newPicture() *picture {
	return &picture{
		tenants: make(map[string]held[model.Tenant]), namespaces: make(map[model.NamespaceKey]held[model.Namespace]),
		streams: make(map[model.StreamKey]held[model.Stream]), caches: make(map[model.CacheKey]held[model.Cache]),
		assignments: make(map[model.ShardKey]model.Assignment),
		graves:      make(map[grave]model.Tombstone), buried: make(map[grave]struct{}),
		touched: newTouched(),
	}
}

var errChange = errors.New("a change without its record")

// replace makes have what a snapshot says. A record it lacks stays, marked as
// missing, unless it is doomed or gone says that it was deleted.
func replace[K comparable, T any](have map[K]held[T], items []T, key func(T) K, gone func(T) bool) {
	named := make(map[K]struct{}, len(items))
	for _, item := range items {
		k := key(item)
		named[k] = struct{}{}
		have[k] = held[T]{rec: item}
	}
	for k, h := range have {
		if _, still := named[k]; still {
			continue
		}
		if h.doomed || gone(h.rec) {
			delete(have, k)
		} else {
			have[k] = held[T]{rec: h.rec, missing: true}
		}
	}
}

// A tenant or namespace that a snapshot lacks stays for now: what is in it
// decides (see dropEmpty).
func (p *picture) replaceTenants(s model.Snapshot[model.Tenant], _ bool) {
	p.touched.all = true
	replace(p.tenants, s.Items, func(t model.Tenant) string { return t.TenantID }, func(model.Tenant) bool { return false })
}

func (p *picture) replaceNamespaces(s model.Snapshot[model.Namespace], _ bool) {
	p.touched.all = true
	replace(p.namespaces, s.Items, model.Namespace.Key, func(model.Namespace) bool { return false })
}

func (p *picture) replaceStreams(s model.Snapshot[model.Stream], _ bool) {
	p.touched.all = true
	graves := p.listed(model.StreamShard, s.Tombstones)
	replace(p.streams, s.Items, model.Stream.Key, func(s model.Stream) bool {
		_, dead := graves[grave{model.StreamShard, s.TenantID, s.Namespace, s.Stream, s.UID}]
		return dead
	})
}

func (p *picture) replaceCaches(s model.Snapshot[model.Cache], _ bool) {
	p.touched.all = true
	graves := p.listed(model.CacheShard, s.Tombstones)
	replace(p.caches, s.Items, model.Cache.Key, func(c model.Cache) bool {
		_, dead := graves[grave{model.CacheShard, c.TenantID, c.Namespace, c.Cache, c.UID}]
		return dead
	})
}

// listed takes the tombstones of a snapshot: those not dealt with are to be.
func (p *picture) listed(kind model.ShardKind, tombstones []model.Tombstone) map[grave]struct{} {
	all := make(map[grave]struct{}, len(tombstones))
	for _, t := range tombstones {
		t.Kind = kind
		g := graveOf(t)
		all[g] = struct{}{}
		if _, done := p.buried[g]; !done {
			p.bury(t)
		}
	}
	maps.DeleteFunc(p.buried, func(g grave, _ struct{}) bool {
		_, still := all[g]
		return g.kind == kind && !still
	})
	return all
}

// bury notes that the data of a tombstone is to be removed. One without a uid
// names no data.
func (p *picture) bury(t model.Tombstone) {
	if t.UID != "" {
		p.graves[graveOf(t)] = t
	}
}

// replaceAssignments takes the place of all that was assigned. Within one run
// of generations an older one is not taken back; a shard whose owner the
// control plane does not know of keeps its place.
func (p *picture) replaceAssignments(s model.Snapshot[model.Assignment], reset bool, routes Routes) {
	p.touched.all = true
	named := make(map[model.ShardKey]struct{}, len(s.Items))
	for _, a := range s.Items {
		k := shardKey(a.ShardKey)
		named[k] = struct{}{}
		if have, found := p.assignments[k]; reset || !found || a.Generation >= have.Generation {
			p.place(k, a, routes)
		}
	}
	for k := range p.assignments {
		if _, still := named[k]; !still && !p.ownerMissing(k) {
			p.release(k, routes)
		}
	}
}

// shardKey fills in the kind, which is a stream's where it is left out.
func shardKey(k model.ShardKey) model.ShardKey {
	if k.Kind == "" {
		k.Kind = model.StreamShard
	}
	return k
}

func (p *picture) place(k model.ShardKey, a model.Assignment, routes Routes) {
	a.ShardKey = k
	p.assignments[k] = a
	p.touched.shard(k)
	routes.SetRoute(a)
}

func (p *picture) release(k model.ShardKey, routes Routes) {
	delete(p.assignments, k)
	p.touched.shard(k)
	routes.DropRoute(k)
}

func (p *picture) ownerMissing(k model.ShardKey) bool {
	if k.Kind == model.CacheShard {
		return p.caches[model.CacheKey{TenantID: k.TenantID, Namespace: k.Namespace, Cache: k.Stream}].missing
	}
	return p.streams[model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}].missing
}

// dropEmpty lets go of tenants and namespaces that the control plane does not
// list any more and in which nothing is left to lose.
func (p *picture) dropEmpty() {
	if !anyMissing(p.namespaces) && !anyMissing(p.tenants) {
		return
	}
	full, used := make(map[model.NamespaceKey]bool), make(map[string]bool)
	for k := range p.streams {
		full[model.NamespaceKey{TenantID: k.TenantID, Namespace: k.Namespace}] = true
	}
	for k := range p.caches {
		full[model.NamespaceKey{TenantID: k.TenantID, Namespace: k.Namespace}] = true
	}
	maps.DeleteFunc(p.namespaces, func(k model.NamespaceKey, h held[model.Namespace]) bool { return h.missing && !full[k] })
	for k := range p.namespaces {
		used[k.TenantID] = true
	}
	maps.DeleteFunc(p.tenants, func(k string, h held[model.Tenant]) bool { return h.missing && !used[k] })
}

func anyMissing[K comparable, T any](all map[K]held[T]) bool {
	for _, h := range all {
		if h.missing {
			return true
		}
	}
	return false
}

// missing names what is served although the control plane does not list it.
func (p *picture) missing() []string {
	var names []string
	for k, h := range p.streams {
		if h.missing {
			names = append(names, "stream "+k.TenantID+"/"+k.Namespace+"/"+k.Stream)
		}
	}
	for k, h := range p.caches {
		if h.missing {
			names = append(names, "cache "+k.TenantID+"/"+k.Namespace+"/"+k.Cache)
		}
	}
	slices.Sort(names)
	return names
}
