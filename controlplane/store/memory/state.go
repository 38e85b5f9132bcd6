package memory

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// ResultsKept is how many results are remembered by rid, newest first to last
// applied (control plane 12.1).
const ResultsKept = 10_000

// A State is everything a store holds. It has no clock, no randomness and no
// lock of its own: see [Machine].
type State struct {
	limits store.Limits
	now    uint64 // the latest At applied; what the command being applied calls now
	stuck  error

	tenants    *table[string, model.Tenant]
	namespaces *table[model.NamespaceKey, model.Namespace]
	streams    *table[model.StreamKey, model.Stream]
	caches     *table[model.CacheKey, model.Cache]
	bridges    *table[model.Bridge, model.Bridge]
	// Of streams and of caches, oldest first.
	streamTombs, cacheTombs ring[model.Tombstone]

	nodes     *table[string, model.Node]
	addresses map[string]string // of a node's listener for brokers, to its id
	features  []string          // enabled ones, sorted

	assignments *table[model.ShardKey, model.Assignment]
	shardsOf    map[string]map[model.ShardKey]struct{} // by node that leads or follows
	reports     map[model.ShardKey]*model.ReplicaReport

	movesPaused bool
	token       uint64
	holder      string // of the lease; "" is nobody

	auth   map[string]*identities   // by tenant; every tenant has one
	tokens map[string]*refreshTable // by tenant; every tenant has one

	tenantFeed     feed[model.TenantChange]
	namespaceFeed  feed[model.NamespaceChange]
	streamFeed     feed[model.StreamChange]
	cacheFeed      feed[model.CacheChange]
	nodeFeed       feed[model.NodeChange]
	assignmentFeed feed[model.AssignmentChange]

	answered map[string]Result   // by rid
	results  ring[answeredImage] // the same, oldest first
	repeats  uint64              // of this process, not of the state
}

// NewState is an empty state.
func NewState(l store.Limits) *State {
	l = l.WithDefaults()
	s := &State{
		limits:     l,
		tenants:    newTable(func(t *model.Tenant) string { return t.TenantID }, strings.Compare),
		namespaces: newTable(func(n *model.Namespace) model.NamespaceKey { return n.Key() }, compareNamespaces),
		streams:    newTable(func(s *model.Stream) model.StreamKey { return s.Key() }, model.StreamKey.Compare),
		caches:     newTable(func(c *model.Cache) model.CacheKey { return c.Key() }, model.CacheKey.Compare),
		bridges:    newTable(func(b *model.Bridge) model.Bridge { return *b }, compareBridges),
		nodes:      newTable(func(n *model.Node) string { return n.NodeID }, strings.Compare),
		addresses:  make(map[string]string),
		features:   []string{},
		assignments: newTable(func(a *model.Assignment) model.ShardKey { return a.ShardKey },
			model.ShardKey.Compare),
		shardsOf: make(map[string]map[model.ShardKey]struct{}),
		reports:  make(map[model.ShardKey]*model.ReplicaReport),
		auth:     make(map[string]*identities),
		tokens:   make(map[string]*refreshTable),
		answered: make(map[string]Result),
	}
	s.results.kept = ResultsKept
	s.streamTombs.kept, s.cacheTombs.kept = l.ChangesKept, l.ChangesKept
	s.tenantFeed.changes.kept = l.ChangesKept
	s.namespaceFeed.changes.kept = l.ChangesKept
	s.streamFeed.changes.kept = l.ChangesKept
	s.cacheFeed.changes.kept = l.ChangesKept
	s.nodeFeed.changes.kept = l.ChangesKept
	s.assignmentFeed.changes.kept = l.ChangesKept
	return s
}

// Apply applies a command and answers with its result. It is deterministic: it
// depends on the commands applied before and on nothing else.
//
// A command of a newer version, or one that is not known, is answered with an
// error of kind unsupported and ends the state: see [State.Stuck]. Going on
// without it would make this state another than that of its peers.
func (s *State) Apply(c Command) Result {
	if s.stuck == nil {
		s.stuck = c.Check()
	}
	if s.stuck != nil {
		return Result{Kind: KindError, Error: &ResultError{Kind: ErrorUnsupported, Detail: s.stuck.Error()}}
	}
	if r, ok := s.answered[c.RID]; ok {
		s.repeats++
		return r
	}
	s.now = max(s.now, c.At)
	r := operations[c.Op](s, c.Body)
	s.remember(c.RID, r)
	return r
}

func (s *State) remember(rid string, r Result) {
	if rid == "" {
		return
	}
	s.answered[rid] = r
	if oldest, full := s.results.add(answeredImage{RID: rid, Result: r}); full {
		delete(s.answered, oldest.RID)
	}
}

// Stuck is the error of a state that met a command which this program does not
// know, and nil otherwise. Such a state applies nothing more and makes no
// snapshots, so that a program which knows the command can go on from the
// snapshot before it.
func (s *State) Stuck() error {
	if s.stuck == nil {
		return nil
	}
	return fmt.Errorf("the metadata cannot be applied further: %w", s.stuck)
}

// Clock is the latest time applied, in milliseconds. Time in the state never
// goes back: a command that is stamped earlier is applied at this time.
func (s *State) Clock() uint64 { return s.now }

// Repeats is how many commands were answered from the memory of results, since
// the state was made. It is no part of the state.
func (s *State) Repeats() uint64 { return s.repeats }

// held says whether the state ever held something that an import would replace
// (control plane 14).
func (s *State) held() bool {
	h := s.heads()
	return cmp.Or(h.Tenants, h.Namespaces, h.Streams, h.Caches, h.Nodes, h.Assignments) != 0 || len(s.features) != 0
}

func (s *State) heads() model.FeedHeads {
	return model.FeedHeads{
		Tenants: s.tenantFeed.next, Namespaces: s.namespaceFeed.next, Streams: s.streamFeed.next,
		Caches: s.cacheFeed.next, Nodes: s.nodeFeed.next, Assignments: s.assignmentFeed.next,
	}
}
