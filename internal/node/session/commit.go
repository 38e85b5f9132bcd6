package session

import (
	"context"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// publishIf appends a batch only where its sender expects it (wire 9.7). It is
// no part of the pipeline: it is answered in request order, and its failures
// as `error`.
func (s *control) publishIf(ctx context.Context, m *wire.PublishIf) verdict {
	r := s.routeNow(m.Tenant, m.Namespace, m.Stream)
	if r.refused != nil {
		return s.refuseTurn(formPublishIf, m.RequestID, r.refused)
	}
	if m.Payloads.Count() == 0 {
		return s.refuseTurn(formPublishIf, m.RequestID, errNoRecords)
	}
	batch := broker.Batch{
		Count: m.Payloads.Count(), PayloadBytes: m.Payloads.PayloadBytes(), Block: m.Payloads,
		Conditional: true, ExpectedOffset: m.ExpectedOffset,
	}
	return s.publishInTurn(ctx, r.shard(m.Key.Value, m.Key.Set), batch, formPublishIf, m.RequestID)
}

// commit writes an event and keyed state as one record (wire 13). Whoever may
// publish to the stream may commit to it.
func (s *control) commit(ctx context.Context, m *wire.Commit) verdict {
	r := s.routeNow(m.Tenant, m.Namespace, m.Stream)
	if r.refused != nil {
		return s.refuseTurn(formCommit, m.RequestID, r.refused)
	}
	batch := broker.Batch{
		Count: 1, PayloadBytes: len(m.Event), Block: wire.AppendBlock(nil, m.Event),
		State: make([]broker.StateChange, len(m.Changes)),
	}
	for i, c := range m.Changes {
		if err := validCacheKey(c.Key); err != nil {
			return s.refuseTurn(formCommit, m.RequestID, asRefusal(err))
		}
		batch.State[i] = broker.StateChange{Key: c.Key, Value: c.Value, Delete: c.Delete}
	}
	batch.ExpectedOffset, batch.Conditional = m.ExpectedOffset.Get()
	return s.publishInTurn(ctx, r.shard(m.EntityKey, true), batch, formCommit, m.RequestID)
}

func (s *control) publishInTurn(ctx context.Context, sh *stream.Shard, batch broker.Batch, f form, requestID uint64) verdict {
	if !sh.Durable() {
		return s.refuseTurn(f, requestID, invalidRequest("this needs a durable stream, and "+sh.Name().String()+" is in memory"))
	}
	p := s.owe(f, wire.Some(requestID))
	if p == nil {
		return finish
	}
	return s.publishCommitted(ctx, sh, batch, p)
}

// refuseTurn answers a request that is not served, in its turn.
func (s *control) refuseTurn(f form, requestID uint64, r *refusal) verdict {
	p := s.owe(f, wire.Some(requestID))
	if p == nil {
		return finish
	}
	p.fail(r)
	return verdictOf(r)
}

// stateGet reads one key of the state that commits wrote (wire 13). Whoever
// may read the stream may read its state.
func (s *control) stateGet(ctx context.Context, m *wire.StateGet) verdict {
	s.awaitTurn(ctx)
	st, err := s.readableStream(m.Tenant, m.Namespace, m.Stream)
	if err != nil {
		return s.refuseRequest(asRefusal(err))
	}
	sh := st.Shard(wire.ShardOf(m.EntityKey, true, st.Shards(), wire.Routing(st.Options().Routing)))
	if err := s.awaitReady(ctx, sh.Ready); err != nil {
		return s.refuseRead(err)
	}
	v, err := sh.State(ctx, m.Key)
	if err != nil {
		return s.refuseRead(err)
	}
	answer := &wire.StateValue{RequestID: m.RequestID}
	if v.Found {
		answer.Value, answer.Version = wire.Some(v.Value), wire.Some(v.Version)
	}
	if v.HasAsOf {
		answer.AsOf = wire.Some(v.AsOf)
	}
	s.answer(answer)
	return goOn
}
