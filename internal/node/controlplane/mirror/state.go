package mirror

import (
	"github.com/felixlog/felix/controlplane/model"
)

// A State is a picture as it is kept for a later run. It holds no secret.
type State struct {
	Tenants     []model.Tenant     `json:"tenants"`
	Namespaces  []model.Namespace  `json:"namespaces"`
	Streams     []model.Stream     `json:"streams"`
	Caches      []model.Cache      `json:"caches"`
	Assignments []model.Assignment `json:"assignments"`
}

func stateOf(p *picture) *State {
	s := &State{
		Tenants: make([]model.Tenant, 0, len(p.tenants)), Namespaces: make([]model.Namespace, 0, len(p.namespaces)),
		Streams: make([]model.Stream, 0, len(p.streams)), Caches: make([]model.Cache, 0, len(p.caches)),
		Assignments: make([]model.Assignment, 0, len(p.assignments)),
	}
	for _, h := range p.tenants {
		s.Tenants = append(s.Tenants, h.rec)
	}
	for _, h := range p.namespaces {
		s.Namespaces = append(s.Namespaces, h.rec)
	}
	for _, h := range p.streams {
		s.Streams = append(s.Streams, h.rec)
	}
	for _, h := range p.caches {
		s.Caches = append(s.Caches, h.rec)
	}
	for _, a := range p.assignments {
		s.Assignments = append(s.Assignments, a)
	}
	return s
}

func (s *State) into(p *picture, routes Routes) {
	for _, t := range s.Tenants {
		p.tenants[t.TenantID] = held[model.Tenant]{rec: t}
	}
	for _, n := range s.Namespaces {
		p.namespaces[n.Key()] = held[model.Namespace]{rec: n}
	}
	for _, st := range s.Streams {
		p.streams[st.Key()] = held[model.Stream]{rec: st}
	}
	for _, c := range s.Caches {
		p.caches[c.Key()] = held[model.Cache]{rec: c}
	}
	for _, a := range s.Assignments {
		p.place(shardKey(a.ShardKey), a, routes)
	}
}
