package session

import (
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/wire"
)

// discover answers questions about placement (wire 7.2, 15). A node that
// stands alone owns every shard it has, and others ask their directory; names
// the node does not know have no shards.
func (s *control) discover(m wire.Message) verdict {
	if ended := s.rights.ended(); ended != nil {
		s.refuse(ended)
		return finish
	}
	var answer wire.Message
	var err error
	switch m := m.(type) {
	case *wire.Topology:
		answer = s.c.srv.topology()
	case *wire.StreamShards:
		answer, err = s.streamShards(m)
	case *wire.CacheShards:
		answer, err = s.cacheShards(m)
	case *wire.ShardOwners:
		answer, err = s.shardOwners(m)
	}
	if err != nil {
		r := asRefusal(err)
		s.refuse(r)
		if r.Code == wire.CodeForbidden {
			return finish
		}
		return goOn
	}
	s.answer(answer)
	return goOn
}

// mayAsk checks what every question about a name is checked for: any
// principal of the tenant may ask.
func (s *control) mayAsk(tenant, kind, namespace, name string) error {
	if tenant != s.principal.Tenant {
		return errTenant
	}
	return validNames(kind, namespace, name)
}

func (s *control) streamShards(m *wire.StreamShards) (wire.Message, error) {
	if err := s.mayAsk(m.Tenant, "stream", m.Namespace, m.Stream); err != nil {
		return nil, err
	}
	view := &wire.StreamShardsView{RequestID: m.RequestID}
	st, err := s.c.srv.stream(m.Tenant, m.Namespace, m.Stream)
	if err != nil {
		return view, unlessMissing(err)
	}
	view.Shards = st.Shards()
	view.Routing = wire.Routing(st.Options().Routing)
	return view, nil
}

func (s *control) cacheShards(m *wire.CacheShards) (wire.Message, error) {
	if err := s.mayAsk(m.Tenant, "cache", m.Namespace, m.Cache); err != nil {
		return nil, err
	}
	view := &wire.CacheShardsView{RequestID: m.RequestID}
	c, err := s.c.srv.cache(m.Tenant, m.Namespace, m.Cache)
	if err != nil {
		return view, unlessMissing(err)
	}
	view.Shards = c.Shards()
	return view, nil
}

func (s *control) shardOwners(m *wire.ShardOwners) (wire.Message, error) {
	if err := s.mayAsk(m.Tenant, "name", m.Namespace, m.Name); err != nil {
		return nil, err
	}
	view := &wire.ShardOwnersView{RequestID: m.RequestID}
	var shards uint32
	switch m.Kind {
	case wire.KindStream:
		st, err := s.c.srv.stream(m.Tenant, m.Namespace, m.Name)
		if err != nil {
			return view, unlessMissing(err)
		}
		shards = st.Shards()
	case wire.KindCache:
		c, err := s.c.srv.cache(m.Tenant, m.Namespace, m.Name)
		if err != nil {
			return view, unlessMissing(err)
		}
		shards = c.Shards()
	default:
		return nil, invalidRequest(`kind must be "stream" or "cache"`)
	}
	for i := range shards {
		view.Owners = append(view.Owners, s.c.srv.shardOwner(m, i))
	}
	return view, nil
}

// topology lists the brokers that serve clients; none is listed by a node that
// stands alone, and those whose address is not known are left out.
func (s *Server) topology() *wire.TopologyView {
	view := &wire.TopologyView{}
	if s.cfg.Directory == nil {
		return view
	}
	for _, b := range s.cfg.Directory.Brokers() {
		if b.Addr != "" {
			view.Brokers = append(view.Brokers, wire.TopologyBroker{NodeID: b.NodeID, Addr: b.Addr})
		}
	}
	return view
}

// shardOwner says who serves a shard.
func (s *Server) shardOwner(m *wire.ShardOwners, shard uint32) wire.ShardOwner {
	answer := wire.ShardOwner{Shard: shard}
	if s.cfg.Directory == nil {
		return answer
	}
	owner, known := s.owner(m.Kind, m.Tenant, m.Namespace, m.Name, shard)
	if !known {
		answer.Unavailable = wire.Some(reasonNotAssigned)
		return answer
	}
	answer.NodeID, answer.Addr, answer.Generation = wire.Some(owner.NodeID), optText(owner.Addr), owner.Generation
	return answer
}

// unlessMissing turns "there is none" into an answer of zero shards.
func unlessMissing(err error) error {
	var missing *broker.NotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	return err
}
