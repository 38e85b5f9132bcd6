package session

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// publishBinary serves a binary publish batch (wire 4.1 to 4.3). The batch
// stays a view of the read buffer until the core copies its record block
// into the envelope that every subscriber shares.
func (s *control) publishBinary(ctx context.Context, flags wire.Flags, payload []byte) verdict {
	var p wire.Publish
	if err := wire.ParsePublish(flags, payload, &p); err != nil {
		if !p.Acked || !errors.Is(err, wire.ErrMalformedBody) {
			return finish // nothing to correlate an answer with (wire 19)
		}
		return s.answerNow(p.RequestID, p.Idempotent, invalidRequest("malformed publish batch"))
	}
	if s.expired.Load() {
		if p.Acked {
			s.answerNow(p.RequestID, p.Idempotent, errExpired)
		}
		s.refuse(errExpired)
		return finish
	}
	if p.Idempotent {
		return s.answerNow(p.RequestID, true, invalidRequest("this broker serves no idempotent producers"))
	}
	r := s.routes.resolve(&p)
	if r.refused != nil {
		return s.refusePublish(&p, r.refused)
	}
	batch := broker.Batch{Count: p.Block.Count(), PayloadBytes: p.Block.PayloadBytes(), Block: p.Block}
	sh := r.shard(p.Key, p.Keyed)
	if !p.Acked {
		return publishUnacked(ctx, s.c, s.identity, sh, batch)
	}
	return s.publishAcked(ctx, sh, batch, p.RequestID, false)
}

// refusePublish answers a publish that may not be served. An acked one gets
// its own failed ack and the stream goes on; an unacked one is dropped when
// the stream is unknown and ends the client's stream otherwise (wire 19).
func (s *control) refusePublish(p *wire.Publish, r *refusal) verdict {
	if p.Acked {
		return s.answerNow(p.RequestID, false, r)
	}
	if r.Code == wire.CodeNotFound {
		s.c.srv.metrics.Publish.Dropped.Inc()
		return goOn
	}
	return finish
}

// answerNow gives a publish an answer that needs no work of the core, in its
// turn among the answers owed.
func (s *control) answerNow(requestID uint64, json bool, r *refusal) verdict {
	s.c.srv.metrics.Publish.Error.Inc()
	p := s.owe(requestID, json)
	if p == nil {
		return finish
	}
	p.Complete(broker.Result{Err: r})
	return goOn
}

// owe opens an answer in the ledger. A full window first lets out what has
// gathered, or nothing could ever free it.
func (s *control) owe(requestID uint64, json bool) *pendingAck {
	if s.acks == nil {
		cfg := &s.c.srv.cfg
		limit := cfg.MaxOutstanding
		if s.window > 0 {
			limit = s.window
		}
		s.acks = newAckLedger(s.out, s.window > 0, limit, cfg.AckWait, s.c.srv.clock, s.offer)
	}
	if s.acks.full() {
		if s.out.flush() != nil {
			return nil
		}
	}
	p := s.acks.owe(requestID, json)
	s.out.beginRound()
	return p
}

// publishAcked hands an acked batch to the core. The core settles it at once
// when the shard's lane is free, and later otherwise.
func (s *control) publishAcked(ctx context.Context, sh *stream.Shard, batch broker.Batch, requestID uint64, json bool) verdict {
	m := s.c.srv.metrics.Publish
	now := s.c.srv.clock.Now()
	p := s.owe(requestID, json)
	if p == nil {
		return finish
	}
	if s.ackOnCommit() {
		if err := s.c.srv.broker.Publish(ctx, sh, s.identity.publish, batch, broker.Wait, p); err != nil {
			m.Error.Inc()
			p.Complete(broker.Result{Err: err})
			return goOn
		}
		m.OK.Inc()
		m.Bytes.Add(float64(batch.PayloadBytes))
		s.acks.left(p, now)
		return goOn
	}
	// In memory, acceptance is what the ack promises (design decision 6).
	err := s.c.srv.broker.Publish(ctx, sh, s.identity.publish, batch, broker.Fail, nil)
	if err != nil {
		m.Error.Inc()
	} else {
		m.Accepted.Inc()
		m.Bytes.Add(float64(batch.PayloadBytes))
	}
	p.Complete(broker.Result{Err: err})
	m.Latency.Observe(s.c.srv.clock.Now().Sub(now))
	return goOn
}

// ackOnCommit says whether this client's acks wait for the write: asked for
// by the node's configuration or by the client (wire 9.2).
func (s *control) ackOnCommit() bool {
	return s.c.srv.cfg.AckOnCommit || s.offer.Has(wire.FeatureAckOnCommit)
}

// publishUnacked hands over a batch nobody waits for. Without room it is
// shed, or with ingress_wait the stream is not read on.
func publishUnacked(ctx context.Context, c *connection, id *identity, sh *stream.Shard, batch broker.Batch) verdict {
	policy := broker.Drop
	if c.srv.cfg.IngressWait {
		policy = broker.Backpressure
	}
	m := c.srv.metrics.Publish
	if err := c.srv.broker.Publish(ctx, sh, id.publish, batch, policy, nil); err != nil {
		m.Dropped.Inc()
	} else {
		m.Accepted.Inc()
		m.Bytes.Add(float64(batch.PayloadBytes))
	}
	return goOn
}

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
	r := &route{refused: errExpired}
	if !s.expired.Load() {
		r = s.c.srv.routeTo(s.principal, j.tenant, j.namespace, j.stream)
	}
	if r.refused != nil {
		return s.refuseJSON(j, acked, r.refused)
	}
	batch := broker.Batch{Count: j.block.Count(), PayloadBytes: j.block.PayloadBytes(), Block: j.block}
	sh := r.shard(j.key.Value, j.key.Set)
	if !acked {
		return publishUnacked(ctx, s.c, s.identity, sh, batch)
	}
	return s.publishAcked(ctx, sh, batch, j.requestID.Value, true)
}

func (s *control) refuseJSON(j jsonPublish, acked bool, r *refusal) verdict {
	ends := r.Code == wire.CodeForbidden || r.Code == wire.CodeUnauthenticated
	switch {
	case acked:
		s.answerNow(j.requestID.Value, true, r)
	case ends:
		s.refuse(r)
	default:
		s.c.srv.metrics.Publish.Dropped.Inc()
	}
	if ends {
		return finish
	}
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
