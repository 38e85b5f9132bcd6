package session

import (
	"context"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// A jsonPublish is publish or publish_batch (wire 7.3), which differ in how
// many payloads they carry and in what an absent ack means.
type jsonPublish struct {
	tenant, namespace, stream string
	block                     wire.Block
	key                       wire.Optional[[]byte]
	requestID                 wire.Optional[uint64]
	ack                       wire.AckMode
	name                      string
}

func jsonPublishOf(m wire.Message) (jsonPublish, bool) {
	switch m := m.(type) {
	case *wire.JSONPublish:
		return jsonPublish{m.Tenant, m.Namespace, m.Stream, wire.AppendBlock(nil, m.Payload), m.Key, m.RequestID, m.Ack.Or(wire.AckPerMessage), "publish"}, true
	case *wire.JSONPublishBatch:
		return jsonPublish{m.Tenant, m.Namespace, m.Stream, m.Payloads, m.Key, m.RequestID, m.Ack.Or(wire.AckPerBatch), "publish batch"}, true
	}
	return jsonPublish{}, false
}

// publishJSON serves the JSON forms. A refused permission ends the stream; an
// unknown stream or a full queue does not (wire 8.1, 19).
func (s *control) publishJSON(ctx context.Context, j jsonPublish) verdict {
	s.c.srv.countJSON(j)
	acked := j.ack != wire.AckNone
	if acked && !j.requestID.Set {
		s.refuse(invalidRequest("missing request_id for acked " + j.name))
		return goOn
	}
	r := s.routeNow(j.tenant, j.namespace, j.stream)
	if r.refused != nil {
		return s.refuseJSON(j, acked, r.refused)
	}
	batch := broker.Batch{Count: j.block.Count(), PayloadBytes: j.block.PayloadBytes(), Block: j.block}
	sh := r.shard(j.key.Value, j.key.Set)
	if !acked {
		return s.publishUnacked(ctx, sh, batch)
	}
	return s.publishAcked(ctx, sh, batch, formPublish, j.requestID.Value)
}

// routeNow is the route of a publish whose names are not cached.
func (s *control) routeNow(tenant, namespace, stream string) *route {
	if ended := s.rights.ended(); ended != nil {
		return &route{refused: ended}
	}
	return s.c.srv.routeTo(s.principal, tenant, namespace, stream)
}

func (s *control) refuseJSON(j jsonPublish, acked bool, r *refusal) verdict {
	switch {
	case acked:
		s.answerNow(formPublish, j.requestID.Value, r)
	case r.ends():
		s.refuse(r)
	default:
		s.c.srv.metrics.Publish.Dropped.Inc()
	}
	return verdictOf(r)
}

// publishIdempotent serves the JSON form of a numbered batch (wire 9.6). It
// belongs to the pipeline, as its binary form does.
func (s *control) publishIdempotent(ctx context.Context, m *wire.PublishIdempotent) verdict {
	r := s.routeNow(m.Tenant, m.Namespace, m.Stream)
	if r.refused != nil {
		s.answerNow(formPublish, m.RequestID, r.refused)
		return verdictOf(r.refused)
	}
	if m.Payloads.Count() == 0 {
		return s.answerNow(formPublish, m.RequestID, errNoRecords)
	}
	batch := broker.Batch{
		Count: m.Payloads.Count(), PayloadBytes: m.Payloads.PayloadBytes(), Block: m.Payloads,
		Producer: broker.Producer{Set: true, ID: m.ProducerID, Sequence: m.Sequence},
	}
	return s.publishAcked(ctx, r.shard(m.Key.Value, m.Key.Set), batch, formPublish, m.RequestID)
}

// producerInit gives out a producer id (wire 9.6): any principal may have one.
func (s *control) producerInit(m *wire.ProducerInit) verdict {
	if ended := s.rights.ended(); ended != nil {
		return s.refuseRequest(ended)
	}
	s.answer(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: s.c.srv.broker.NewProducerID()})
	return goOn
}

// countJSON counts publishes in the slower encoding, so that an operator sees
// who could be faster.
func (s *Server) countJSON(j jsonPublish) {
	if j.name == "publish" {
		s.metrics.Publish.JSON.Inc()
	} else {
		s.metrics.Publish.JSONBatch.Inc()
	}
}

// publisherOf is who published, as it is kept with a batch: the token's
// subject, if it fits (wire 4.5).
func publisherOf(p *auth.Principal) string {
	if len(p.Subject) > wire.MaxPublisher {
		return ""
	}
	return p.Subject
}
