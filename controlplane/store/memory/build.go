package memory

import (
	"errors"
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// build makes a state of an image, and refuses what could not have come to be.
func build(l store.Limits, d imageData) (*State, error) {
	s := NewState(l)
	s.now, s.movesPaused, s.token, s.holder = d.Now, d.MovesPaused, d.Token, d.Holder
	s.features = some(slices.Compact(slices.Sorted(slices.Values(d.Features))))
	for _, step := range []func(*State, imageData) error{
		(*State).buildCatalog, (*State).buildNodes, (*State).buildAssignments, (*State).buildAuth,
		(*State).buildTokens, (*State).buildFeeds, (*State).buildAnswered,
	} {
		if err := step(s, d); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fill fills a table of a list that was read.
func fill[K comparable, V any](t *table[K, V], list []*V, what string) error {
	if slices.Contains(list, nil) {
		return fmt.Errorf("a %s is null", what)
	}
	if !t.fill(list) {
		return fmt.Errorf("a %s is there twice", what)
	}
	return nil
}

func (s *State) buildCatalog(d imageData) error {
	err := errors.Join(
		fill(s.tenants, d.Tenants, "tenant"), fill(s.namespaces, d.Namespaces, "namespace"),
		fill(s.streams, d.Streams, "stream"), fill(s.caches, d.Caches, "cache"), fill(s.bridges, d.Bridges, "bridge"),
	)
	if err != nil {
		return err
	}
	for _, t := range s.tenants.sorted {
		s.auth[t.TenantID] = &identities{}
		s.tokens[t.TenantID] = newRefreshTable()
	}
	for _, n := range s.namespaces.sorted {
		if !s.tenants.has(n.TenantID) {
			return fmt.Errorf("namespace %s/%s has no tenant", n.TenantID, n.Namespace)
		}
	}
	for _, r := range s.streams.sorted {
		if !s.namespaces.has(model.NamespaceKey{TenantID: r.TenantID, Namespace: r.Namespace}) {
			return fmt.Errorf("stream %s/%s/%s has no namespace", r.TenantID, r.Namespace, r.Stream)
		}
	}
	for _, r := range s.caches.sorted {
		if !s.namespaces.has(model.NamespaceKey{TenantID: r.TenantID, Namespace: r.Namespace}) {
			return fmt.Errorf("cache %s/%s/%s has no namespace", r.TenantID, r.Namespace, r.Cache)
		}
	}
	for _, t := range d.Tombstones {
		switch t.Kind {
		case model.StreamShard:
			s.streamTombs.add(t)
		case model.CacheShard:
			s.cacheTombs.add(t)
		default:
			return fmt.Errorf("tombstone is of kind %q, which is not known", t.Kind)
		}
	}
	return nil
}

func (s *State) buildNodes(d imageData) error {
	if err := fill(s.nodes, d.Nodes, "node"); err != nil {
		return err
	}
	for _, n := range s.nodes.sorted {
		if other, taken := s.addresses[n.Spec.AdvertiseAddr]; taken {
			return fmt.Errorf("nodes %s and %s advertise the same address", other, n.NodeID)
		}
		s.addresses[n.Spec.AdvertiseAddr] = n.NodeID
		if n.Spec.Labels == nil {
			n.Spec.Labels = map[string]string{}
		}
	}
	return nil
}

func (s *State) buildAssignments(d imageData) error {
	if err := fill(s.assignments, d.Assignments, "assignment"); err != nil {
		return err
	}
	for _, a := range s.assignments.sorted {
		a.Replicas = some(a.Replicas)
		if err := s.checkAssignment(*a); err != nil {
			return fmt.Errorf("assignment of %s: %w", a.ShardKey, err)
		}
		s.list(a)
	}
	return nil
}

func (s *State) buildAuth(d imageData) error {
	for _, a := range d.Auth {
		i, ok := s.auth[a.TenantID]
		if !ok {
			return fmt.Errorf("identities of %s have no tenant", a.TenantID)
		}
		if slices.Contains(a.Keys, nil) || slices.Contains(a.Issuers, nil) {
			return fmt.Errorf("a signing key or issuer of tenant %s is null", a.TenantID)
		}
		current := 0
		for _, k := range a.Keys {
			if err := i.addKey(*k, k.Status); err != nil {
				return fmt.Errorf("signing keys of tenant %s: %w", a.TenantID, err)
			}
			switch k.Status {
			case model.KeyCurrent:
				current++
			case model.KeyStaged, model.KeyPrevious:
			default:
				return fmt.Errorf("a signing key of tenant %s has status %q, which is not known", a.TenantID, k.Status)
			}
		}
		if current > 1 {
			return fmt.Errorf("tenant %s has more than one current signing key", a.TenantID)
		}
		for _, issuer := range a.Issuers {
			i.putIssuer(*issuer)
		}
		i.policies = slices.Compact(slices.SortedFunc(slices.Values(a.Policies), comparePolicies))
		i.groupings = slices.Compact(slices.SortedFunc(slices.Values(a.Groupings), compareGroupings))
		i.bootstrapped = a.Bootstrapped
	}
	return nil
}

func (s *State) buildTokens(d imageData) error {
	for _, r := range d.Tokens {
		if r == nil {
			return errors.New("a refresh token is null")
		}
		t, ok := s.tokens[r.TenantID]
		if !ok || t.byID[r.TokenID] != nil {
			return errors.New("a refresh token has no tenant or is there twice")
		}
		r.Groups = some(r.Groups)
		t.add(r)
	}
	return nil
}

func (s *State) buildFeeds(d imageData) error {
	return errors.Join(
		restoreFeed(&s.tenantFeed, d.TenantFeed, "tenants"),
		restoreFeed(&s.namespaceFeed, d.NamespaceFeed, "namespaces"),
		restoreFeed(&s.streamFeed, d.StreamFeed, "streams"),
		restoreFeed(&s.cacheFeed, d.CacheFeed, "caches"),
		restoreFeed(&s.nodeFeed, d.NodeFeed, "nodes"),
		restoreFeed(&s.assignmentFeed, d.AssignmentFeed, "assignments"),
	)
}

func restoreFeed[C model.Sequenced](f *feed[C], i feedImage[C], what string) error {
	n := uint64(len(i.Changes))
	if n > i.Next {
		return fmt.Errorf("the feed of %s has %d changes before sequence %d", what, n, i.Next)
	}
	for at, c := range i.Changes {
		if want := i.Next - n + uint64(at); c.Sequence() != want {
			return fmt.Errorf("the feed of %s has sequence %d where %d belongs", what, c.Sequence(), want)
		}
	}
	f.restore(i.Next, i.Changes)
	return nil
}

func (s *State) buildAnswered(d imageData) error {
	for _, a := range d.Answered {
		if _, twice := s.answered[a.RID]; twice || a.RID == "" {
			return errors.New("a result is remembered twice, or of no command")
		}
		s.remember(a.RID, a.Result)
	}
	return nil
}
