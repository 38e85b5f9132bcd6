package session

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/admission"
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
		return s.answerNow(formOf(&p), p.RequestID, invalidRequest("malformed publish batch"))
	}
	if ended := s.rights.ended(); ended != nil {
		if p.Acked {
			s.answerNow(formOf(&p), p.RequestID, ended)
		}
		s.refuse(ended)
		return finish
	}
	r := s.routes.resolve(&p)
	if r.refused != nil {
		return s.refusePublish(&p, r.refused)
	}
	batch := broker.Batch{Count: p.Block.Count(), PayloadBytes: p.Block.PayloadBytes(), Block: p.Block}
	sh := r.shard(p.Key, p.Keyed)
	switch {
	case !p.Acked:
		return s.publishUnacked(ctx, sh, batch)
	case p.Idempotent && batch.Count == 0:
		return s.answerNow(formPublish, p.RequestID, errNoRecords)
	case p.Idempotent:
		batch.Producer = broker.Producer{Set: true, ID: p.ProducerID, Sequence: p.Sequence}
	}
	return s.publishAcked(ctx, sh, batch, formOf(&p), p.RequestID)
}

// formOf is how a binary publish is answered: an idempotent one in JSON.
func formOf(p *wire.Publish) form {
	if p.Idempotent {
		return formPublish
	}
	return formAck
}

// refusePublish answers a publish that may not be served. An acked one gets
// its own failed ack and the stream goes on; an unacked one is dropped when
// the stream is unknown and ends the client's stream otherwise (wire 19).
func (s *control) refusePublish(p *wire.Publish, r *refusal) verdict {
	if p.Acked {
		return s.answerNow(formOf(p), p.RequestID, r)
	}
	if r.Code == wire.CodeNotFound {
		s.c.srv.metrics.Publish.Dropped.Inc()
		return goOn
	}
	return finish
}

// answerNow gives a publish an answer that needs no work of the core, in its
// turn among the answers owed.
func (s *control) answerNow(f form, requestID uint64, r *refusal) verdict {
	p := s.owePublish(f, requestID)
	if p == nil {
		return finish
	}
	p.fail(r)
	return goOn
}

// owePublish opens an answer among those to publishes; nil means that the
// stream has ended. A full window first lets out what has gathered, or nothing
// could ever free it.
func (s *control) owePublish(f form, requestID uint64) *owed {
	if s.acks == nil {
		cfg := &s.c.srv.cfg
		limit := cfg.MaxOutstanding
		if s.window > 0 {
			limit = s.window
		}
		s.acks = newLedger(s.out, s.window > 0, limit, cfg.AckWait, s.c.srv.clock, s.shaper())
	}
	return s.oweIn(s.acks, f, requestID)
}

// oweIn opens an answer in l; nil means that the stream has ended.
func (s *control) oweIn(l *ledger, f form, requestID uint64) *owed {
	now := s.c.srv.clock.Now()
	if p := l.tryOwe(f, requestID, now); p != nil {
		return p
	}
	if s.out.flush() != nil {
		return nil
	}
	defer s.out.beginRound()
	return l.owe(f, requestID, now)
}

// shaper is what the stream's ledgers write their answers with.
func (s *control) shaper() *answers {
	if s.shape == nil {
		s.shape = &answers{srv: s.c.srv, offer: s.offer, metrics: s.c.srv.metrics, clock: s.c.srv.clock, owed: &s.c.owed}
	}
	return s.shape
}

// publishAcked hands an acked batch to the core. In memory, acceptance is
// what the ack promises (design decision 6); what goes to a log, and what the
// node or the client wants so (wire 9.2), is answered after the commit.
func (s *control) publishAcked(ctx context.Context, sh *stream.Shard, batch broker.Batch, f form, requestID uint64) verdict {
	p := s.owePublish(f, requestID)
	if p == nil {
		return finish
	}
	if sh.Durable() || batch.Producer.Set || s.ackOnCommit() {
		return s.publishCommitted(ctx, sh, batch, p)
	}
	m := s.c.srv.metrics.Publish
	err := s.c.srv.broker.Publish(ctx, sh, s.identity.publish, batch, broker.Fail, nil)
	if err != nil {
		m.Error.Inc()
	} else {
		m.Accepted.Inc()
		m.Bytes.Add(float64(batch.PayloadBytes))
	}
	p.accept(err)
	m.Latency.Observe(s.c.srv.clock.Now().Sub(p.started))
	return goOn
}

// ackOnCommit says whether this client's acks wait for the write of every
// stream: asked for by the node's configuration or by the client.
func (s *control) ackOnCommit() bool {
	return s.c.srv.cfg.AckOnCommit || s.offer.Has(wire.FeatureAckOnCommit)
}

// publishCommitted hands over a batch that the core answers once it is
// written. Without room for it the publish is parked: it waits its time away
// from this goroutine, which goes on reading.
func (s *control) publishCommitted(ctx context.Context, sh *stream.Shard, batch broker.Batch, p *owed) verdict {
	p.bytes, p.numbered = batch.PayloadBytes, batch.Producer.Set
	s.sign(sh, &batch)
	if s.parked.idle() {
		err := s.c.srv.broker.Publish(ctx, sh, s.identity.publish, batch, broker.Try, p)
		switch {
		case err == nil:
			p.ledger.left(p, p.started)
			return goOn
		case !wantsRoom(err):
			countRefused(sh, err)
			p.fail(err)
			return goOn
		}
	}
	return s.park(ctx, parkedPublish{shard: sh, batch: batch, policy: broker.Wait, done: p, since: p.started})
}

// sign adds who publishes, where that is to be kept.
func (s *control) sign(sh *stream.Shard, batch *broker.Batch) {
	if s.c.srv.cfg.RecordPublishers && sh.Durable() {
		batch.Publisher = publisherOf(s.principal)
	}
}

// wantsRoom says that a publish may succeed as soon as others are done. Over
// its quota a tenant is refused at once, however long it would wait.
func wantsRoom(err error) bool {
	var full *broker.OverloadedError
	return errors.As(err, &full) && full.Reason != broker.TenantQuota
}

// countRefused lets a refusal under [broker.Try], which counts nothing, appear
// in the tenant's account.
func countRefused(sh *stream.Shard, err error) {
	var full *broker.OverloadedError
	if errors.As(err, &full) {
		sh.Account().Count(full.Reason, admission.Refused)
	}
}

// publishUnacked hands over a batch nobody waits for, behind what is parked.
func (s *control) publishUnacked(ctx context.Context, sh *stream.Shard, batch broker.Batch) verdict {
	s.sign(sh, &batch)
	policy := unackedPolicy(s.c.srv)
	if s.parked.idle() {
		if policy == broker.Drop {
			publishUnacked(ctx, s.c.srv, s.identity, sh, batch, policy)
			return goOn
		}
		err := s.c.srv.broker.Publish(ctx, sh, s.identity.publish, batch, broker.Try, nil)
		var full *broker.OverloadedError
		if !errors.As(err, &full) {
			s.c.srv.countUnacked(batch, err)
			return goOn
		}
	}
	return s.park(ctx, parkedPublish{shard: sh, batch: batch, policy: policy})
}

// unackedPolicy says what happens to a batch nobody waits for when there is no
// room: it is shed, or with ingress_wait the stream is not read on.
func unackedPolicy(srv *Server) broker.Policy {
	if srv.cfg.IngressWait {
		return broker.Backpressure
	}
	return broker.Drop
}

func publishUnacked(ctx context.Context, srv *Server, id *identity, sh *stream.Shard, batch broker.Batch, policy broker.Policy) {
	srv.countUnacked(batch, srv.broker.Publish(ctx, sh, id.publish, batch, policy, nil))
}

func (s *Server) countUnacked(batch broker.Batch, err error) {
	m := s.metrics.Publish
	if err != nil {
		m.Dropped.Inc()
		return
	}
	m.Accepted.Inc()
	m.Bytes.Add(float64(batch.PayloadBytes))
}
