package memory

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// dump is the state of an image as [store.Store] exports it.
func (i *Image) dump() *model.Dump {
	d := &model.Dump{
		Version: model.DumpVersion,
		Tenants: cloned(i.data.Tenants, same), Namespaces: cloned(i.data.Namespaces, same),
		Streams: cloned(i.data.Streams, cloneStream), Caches: cloned(i.data.Caches, same),
		Nodes: cloned(i.data.Nodes, cloneNode), Assignments: cloned(i.data.Assignments, cloneAssignment),
		Bridges: cloned(i.data.Bridges, same), Tombstones: some(i.data.Tombstones),
		Auth: []model.TenantAuth{}, Features: some(slices.Clone(i.data.Features)),
		MovesPaused: i.data.MovesPaused, Token: i.data.Token,
		NextSeq: model.FeedHeads{
			Tenants: i.data.TenantFeed.Next, Namespaces: i.data.NamespaceFeed.Next, Streams: i.data.StreamFeed.Next,
			Caches: i.data.CacheFeed.Next, Nodes: i.data.NodeFeed.Next, Assignments: i.data.AssignmentFeed.Next,
		},
	}
	for _, a := range i.data.Auth {
		d.Auth = append(d.Auth, model.TenantAuth{
			TenantID: a.TenantID, Bootstrapped: a.Bootstrapped,
			Keys: (&identities{keys: a.Keys}).listed(), Issuers: cloned(a.Issuers, cloneIssuer),
			Policies: some(slices.Clone(a.Policies)), Groupings: some(slices.Clone(a.Groupings)),
		})
	}
	return d
}

type importBody struct {
	Dump      model.Dump `json:"dump"`
	Overwrite bool       `json:"overwrite"`
}

// importDump replaces everything by a dump (control plane 14).
//
// A reader at the head of a feed that is imported into an empty store notices
// nothing. Where a store that held something is overwritten, every feed goes
// past both its own head and that of the dump, so that each reader of either
// takes a new snapshot instead of going on over the break. The token goes past
// its own value, which fences a planner that read what is gone.
func (s *State) importDump(b importBody) error {
	if err := store.CheckDump(&b.Dump); err != nil {
		return err
	}
	held := s.held()
	if held && !b.Overwrite {
		return store.Conflict(store.NotEmpty, "the store holds something, or has held something: import with overwrite to replace it")
	}
	fresh, err := build(s.limits, imageOfDump(&b.Dump))
	if err != nil {
		return fmt.Errorf("dump contradicts itself: %w", err)
	}
	if held {
		pass(&fresh.tenantFeed, &s.tenantFeed)
		pass(&fresh.namespaceFeed, &s.namespaceFeed)
		pass(&fresh.streamFeed, &s.streamFeed)
		pass(&fresh.cacheFeed, &s.cacheFeed)
		pass(&fresh.nodeFeed, &s.nodeFeed)
		pass(&fresh.assignmentFeed, &s.assignmentFeed)
	}
	fresh.now, fresh.holder = s.now, s.holder
	fresh.token = max(s.token+1, fresh.token)
	fresh.answered, fresh.results = s.answered, s.results
	fresh.repeats = s.repeats
	*s = *fresh
	return nil
}

// pass moves the head of a feed past that of the one it replaces.
func pass[C any](f, old *feed[C]) { f.next = max(f.next, old.next) + 1 }

func imageOfDump(d *model.Dump) imageData {
	i := imageData{
		Tenants: pointers(d.Tenants), Namespaces: pointers(d.Namespaces),
		Streams: pointers(d.Streams), Caches: pointers(d.Caches), Bridges: pointers(d.Bridges),
		Tombstones: d.Tombstones, Nodes: pointers(d.Nodes), Features: d.Features, Assignments: pointers(d.Assignments),
		MovesPaused: d.MovesPaused, Token: d.Token,
	}
	i.TenantFeed.Next, i.NamespaceFeed.Next, i.StreamFeed.Next = d.NextSeq.Tenants, d.NextSeq.Namespaces, d.NextSeq.Streams
	i.CacheFeed.Next, i.NodeFeed.Next, i.AssignmentFeed.Next = d.NextSeq.Caches, d.NextSeq.Nodes, d.NextSeq.Assignments
	for _, a := range d.Auth {
		keys := pointers(a.Keys)
		slices.Reverse(keys) // newest first in a dump, within a status
		i.Auth = append(i.Auth, authImage{
			TenantID: a.TenantID, Bootstrapped: a.Bootstrapped, Keys: keys,
			Issuers: pointers(a.Issuers), Policies: a.Policies, Groupings: a.Groupings,
		})
	}
	return i
}

func pointers[V any](list []V) []*V {
	p := make([]*V, len(list))
	for i := range list {
		p[i] = &list[i]
	}
	return p
}
