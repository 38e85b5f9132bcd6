package memory

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

type putBody struct {
	Assignment model.Assignment `json:"assignment"`
	Expected   *uint64          `json:"expected"`
	Token      uint64           `json:"token"`
}

type putsBody struct {
	Puts  []store.Put `json:"puts"`
	Token uint64      `json:"token"`
}

type putResult struct {
	Outcome store.PutOutcome  `json:"outcome"`
	Written *model.Assignment `json:"written,omitempty"`
	Token   uint64            `json:"token"`
	Current *uint64           `json:"current,omitempty"`
}

func (s *State) putAssignmentIf(b putBody) (putResult, error) {
	results, err := s.putAssignmentsIf(putsBody{[]store.Put{{Assignment: b.Assignment, Expected: b.Expected}}, b.Token})
	if err != nil {
		return putResult{}, err
	}
	return results[0], nil
}

// putAssignmentsIf judges in this order: the token, the rules, the generation,
// the step from one state to the next (control plane 7.7). All are judged before
// the first is written.
func (s *State) putAssignmentsIf(b putsBody) ([]putResult, error) {
	if len(b.Puts) > store.MaxPuts {
		return nil, fmt.Errorf("%d assignments in one write, the most is %d", len(b.Puts), store.MaxPuts)
	}
	results := make([]putResult, len(b.Puts))
	if b.Token != s.token {
		for i := range results {
			results[i] = putResult{Outcome: store.Fenced, Token: s.token}
		}
		return results, nil
	}
	token := s.token
	ahead := make(map[model.ShardKey]*model.Assignment) // written by an earlier put of this command
	for i, p := range b.Puts {
		old := ahead[p.Assignment.ShardKey]
		if old == nil {
			old, _ = s.assignments.get(p.Assignment.ShardKey)
		}
		r, err := s.judgePut(p, old)
		if err != nil {
			return nil, err
		}
		if results[i] = r; r.Outcome == store.Written {
			ahead[r.Written.ShardKey] = r.Written
			token++
		}
	}
	for i := range results {
		results[i].Token = token
		if results[i].Outcome == store.Written {
			s.write(results[i].Written)
		}
	}
	s.token = token
	return results, nil
}

// judgePut says what becomes of a put on a shard whose assignment is old, nil
// for none.
func (s *State) judgePut(p store.Put, old *model.Assignment) (putResult, error) {
	shards, err := s.shardsIn(p.Assignment.ShardKey)
	if err != nil {
		return putResult{}, err
	}
	r, err := store.JudgePut(p, shards, s.nodes.has, old)
	if err != nil {
		return putResult{}, err
	}
	result := putResult{Outcome: r.Outcome, Current: r.Current}
	if r.Outcome == store.Written {
		result.Written = &r.Written
	}
	return result, nil
}

// checkAssignment holds an assignment against what else is there (control plane
// 7.9).
func (s *State) checkAssignment(a model.Assignment) error {
	shards, err := s.shardsIn(a.ShardKey)
	if err != nil {
		return err
	}
	return store.CheckAssignment(a, shards, s.nodes.has)
}

// shardsIn is how many shards the stream or cache of a shard has.
func (s *State) shardsIn(k model.ShardKey) (uint32, error) {
	switch k.Kind {
	case model.StreamShard:
		if r, ok := s.streams.get(model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}); ok {
			return r.Shards, nil
		}
	case model.CacheShard:
		if r, ok := s.caches.get(model.CacheKey{TenantID: k.TenantID, Namespace: k.Namespace, Cache: k.Stream}); ok {
			return r.Shards, nil
		}
	}
	return 0, store.NoOwner(k.Kind)
}

// write stores an assignment and publishes it.
func (s *State) write(a *model.Assignment) {
	op := model.Assigned
	if old, there := s.assignments.get(a.ShardKey); there {
		op = model.Updated
		s.unlist(old)
	}
	s.list(a)
	s.assignments.put(a)
	s.assignmentFeed.add(func(seq uint64) model.AssignmentChange {
		return model.AssignmentChange{Seq: seq, Op: op, Key: a.ShardKey, Assignment: a}
	})
}

func (s *State) deleteAssignment(k model.ShardKey) error {
	a, ok := s.assignments.get(k)
	if !ok {
		return missing("assignment")
	}
	s.assignments.remove(k)
	s.unassigned(a)
	return nil
}

// disown deletes the assignments of a stream or cache. Those of a cache and a
// stream of the same name are neighbours in the table.
func (s *State) disown(o owner) {
	for _, a := range s.assignments.run(o.shards) {
		if a.Kind == o.kind {
			s.assignments.remove(a.ShardKey)
			s.unassigned(a)
		}
	}
}

// unassigned publishes the end of an assignment that has left the table.
func (s *State) unassigned(a *model.Assignment) {
	s.unlist(a)
	delete(s.reports, a.ShardKey)
	s.assignmentFeed.add(func(seq uint64) model.AssignmentChange {
		return model.AssignmentChange{Seq: seq, Op: model.Unassigned, Key: a.ShardKey}
	})
}

// list and unlist keep the index of shards by node.
func (s *State) list(a *model.Assignment) {
	for _, node := range append([]string{a.Leader}, a.Replicas...) {
		if s.shardsOf[node] == nil {
			s.shardsOf[node] = make(map[model.ShardKey]struct{})
		}
		s.shardsOf[node][a.ShardKey] = struct{}{}
	}
}

func (s *State) unlist(a *model.Assignment) {
	for _, node := range append([]string{a.Leader}, a.Replicas...) {
		delete(s.shardsOf[node], a.ShardKey)
		if len(s.shardsOf[node]) == 0 {
			delete(s.shardsOf, node)
		}
	}
}
