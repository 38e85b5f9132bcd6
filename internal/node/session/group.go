package session

import (
	"context"
	"fmt"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// groupRequest serves the requests of consumer groups (wire 12). A poll may
// wait, and does so on a goroutine of its own; an ack is answered in its turn
// once the cursor is durable, and this goroutine goes on with the next request;
// the others are served where they are read.
func (s *control) groupRequest(ctx context.Context, m wire.Message) verdict {
	metrics := s.c.srv.metrics.Groups
	metrics.Request(m.MessageType())
	switch m := m.(type) {
	case *wire.GroupPoll:
		if err := s.groupPoll(ctx, m); err != nil {
			return s.refuseGroup(err)
		}
		return goOn
	case *wire.GroupAck, *wire.GroupAckBatch, *wire.GroupNack, *wire.GroupExtend:
		start := s.c.srv.clock.Now()
		if err := s.groupSettle(ctx, m); err != nil {
			metrics.Latency.Observe(s.c.srv.clock.Now().Sub(start))
			return s.refuseGroup(err)
		}
		return goOn
	}
	s.awaitTurn(ctx)
	start := s.c.srv.clock.Now()
	answer, err := s.groupAnswer(ctx, m)
	metrics.Latency.Observe(s.c.srv.clock.Now().Sub(start))
	if err != nil {
		return s.refuseGroup(err)
	}
	s.answer(answer)
	return goOn
}

// refuseGroup answers a request of a group that is not served.
func (s *control) refuseGroup(err error) verdict {
	s.c.srv.metrics.Groups.Errors.Inc()
	return s.refuseRequest(asGroupRefusal(err))
}

// A groupRight is what a request of a group needs (wire 12.3).
type groupRight uint8

const (
	mayConsume groupRight = iota // poll, settle, look
	mayManage                    // move, delete, decide about dead letters
)

// A groupRoute is what one client stream knows about one group of a shard: its
// handle and what this identity may do with it.
type groupRoute struct {
	stream *stream.Stream
	shard  *stream.Shard
	ref    queue.Ref
	rights [2]bool // by groupRight
	ready  func(context.Context) error
}

// groupRoutes caches the decisions of one client stream. The last one used is
// kept apart: a worker rarely changes its group.
type groupRoutes struct {
	last     *groupRoute
	lastName wire.GroupRef
	byName   map[wire.GroupRef]*groupRoute
}

func (c *groupRoutes) find(name *wire.GroupRef) *groupRoute {
	if c.last == nil || c.lastName != *name {
		hit := c.byName[*name]
		if hit == nil {
			return nil
		}
		c.last, c.lastName = hit, *name
	}
	if c.last.stale() {
		return nil
	}
	return c.last
}

// stale says that the stream was removed, or its shard is another one by now.
func (r *groupRoute) stale() bool {
	return !r.stream.Active() || r.stream.Shard(r.shard.Index()) != r.shard
}

func (c *groupRoutes) keep(name *wire.GroupRef, r *groupRoute) {
	if c.byName == nil || len(c.byName) >= maxRoutes {
		c.byName = make(map[wire.GroupRef]*groupRoute)
	}
	c.last, c.lastName = r, *name
	c.byName[*name] = r
}

// group finds the group a request is about and waits until its shard serves.
func (s *control) group(ctx context.Context, name *wire.GroupRef, right groupRight) (*groupRoute, error) {
	if ended := s.rights.ended(); ended != nil {
		return nil, ended
	}
	r := s.groups.find(name)
	if r == nil {
		var err error
		if r, err = s.findGroup(name, right); err != nil {
			return nil, err
		}
		s.groups.keep(name, r)
	}
	if !r.rights[right] {
		return nil, errForbidden
	}
	return r, s.awaitReady(ctx, r.ready)
}

// findGroup authorises and resolves in the order a refusal is to be worded:
// tenant, grammar of the names, permission, existence, fitness.
func (s *control) findGroup(name *wire.GroupRef, right groupRight) (*groupRoute, error) {
	if name.Tenant != s.principal.Tenant {
		return nil, errTenant
	}
	if err := validNames("stream", name.Namespace, name.Stream); err != nil {
		return nil, err
	}
	if err := wire.ValidateName("group", name.Group); err != nil {
		return nil, invalidRequest(err.Error())
	}
	grants := s.principal.Grants
	rights := [2]bool{
		mayConsume: grants.CanConsumeGroup(name.Namespace, name.Stream, name.Group),
		mayManage:  grants.CanManageGroup(name.Namespace, name.Stream, name.Group),
	}
	if !rights[right] {
		return nil, errForbidden
	}
	st, err := s.c.srv.stream(name.Tenant, name.Namespace, name.Stream)
	if err != nil {
		return nil, err
	}
	if name.Shard >= st.Shards() {
		return nil, invalidRequest(fmt.Sprintf("shard %d does not exist: the stream has %d", name.Shard, st.Shards()))
	}
	sh := st.Shard(name.Shard)
	if !sh.Durable() {
		return nil, invalidRequest("consumer groups need a durable stream, and " + sh.Name().String() + " is in memory")
	}
	groups, ref := s.c.srv.broker.Groups(), queue.Ref{Shard: sh, Group: name.Group}
	return &groupRoute{stream: st, shard: sh, ref: ref, rights: rights, ready: func(ctx context.Context) error {
		if err := sh.Ready(ctx); err != nil {
			return err
		}
		return groups.Ready(ctx, ref)
	}}, nil
}
