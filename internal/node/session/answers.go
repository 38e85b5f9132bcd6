package session

import (
	"errors"
	"sync/atomic"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/wire"
)

// answers writes the answers of one control stream in the encoding of their
// requests and with the fields this client negotiated (wire 4.4, 7.3, 16.3).
// The lock of the stream's replies guards it; its messages are reused, so that
// an answer allocates nothing.
type answers struct {
	srv     *Server
	offer   wire.Offer
	metrics *telemetry.Metrics
	clock   broker.Clock
	owed    *atomic.Int64 // counts what is outstanding

	publishOK wire.PublishOK
	commitOK  wire.CommitOK
	cacheOK   wire.CacheOK
	value     wire.CacheValue
	condition wire.CacheConditionResult
	counter   wire.CounterValue
	extended  wire.GroupExtended
	acked     wire.GroupAcked
}

// append appends the answer to p.
func (a *answers) append(dst []byte, p *owed) []byte {
	if p.err != nil {
		return a.appendRefusal(dst, p)
	}
	switch p.form {
	case formAck:
		ack := wire.Ack{RequestID: p.requestID, HasOffset: p.hasOffset, Offset: p.offset}
		a.offer.ShapeAck(&ack)
		return ack.Append(dst)
	case formPublish, formPublishIf:
		a.publishOK = wire.PublishOK{RequestID: p.requestID}
		if p.hasOffset {
			a.publishOK.Offset = a.offer.AckOffset(p.offset)
		}
		return wire.AppendMessage(dst, &a.publishOK)
	case formCommit:
		a.commitOK = wire.CommitOK{RequestID: p.requestID, Offset: p.offset}
		return wire.AppendMessage(dst, &a.commitOK)
	case formPut:
		if !p.hasID {
			return wire.AppendMessage(dst, &wire.OK{})
		}
		a.cacheOK.RequestID = p.requestID
		return wire.AppendMessage(dst, &a.cacheOK)
	case formValue:
		return a.appendValue(dst, p)
	case formCondition:
		a.condition = wire.CacheConditionResult{
			Applied:   p.result.Applied,
			Version:   wire.Optional[uint64]{Value: p.result.Version, Set: p.result.HasVersion},
			RequestID: p.requestID,
		}
		return wire.AppendMessage(dst, &a.condition)
	case formSettled:
		a.cacheOK.RequestID = p.requestID
		return wire.AppendMessage(dst, &a.cacheOK)
	case formExtended:
		a.extended = wire.GroupExtended{VisibleMS: uint64(max(p.granted.Milliseconds(), 0)), RequestID: p.requestID}
		return wire.AppendMessage(dst, &a.extended)
	case formAcked:
		return a.appendAcked(dst, p)
	default:
		a.counter = wire.CounterValue{Value: wire.Optional[int64]{Value: p.sum, Set: p.hasSum}, RequestID: p.requestID}
		return wire.AppendMessage(dst, &a.counter)
	}
}

func (a *answers) appendValue(dst []byte, p *owed) []byte {
	a.value = wire.CacheValue{
		Tenant: p.names.tenant, Namespace: p.names.namespace, Cache: p.names.cache, Key: p.names.key,
		RequestID: wire.Optional[uint64]{Value: p.requestID, Set: p.hasID},
	}
	if p.hit {
		a.value.Value = wire.Some(p.item.Value)
		if p.versions && a.offer.Has(wire.FeatureCacheConditional) {
			a.value.Version = wire.Some(p.item.Version)
		}
	}
	dst = wire.AppendMessage(dst, &a.value)
	a.value = wire.CacheValue{} // lets go of the value
	return dst
}

// appendAcked answers a batch of acks, each failure in the words of its own.
func (a *answers) appendAcked(dst []byte, p *owed) []byte {
	a.acked = wire.GroupAcked{RequestID: p.requestID}
	for _, f := range p.failed {
		a.acked.Failed = append(a.acked.Failed, wire.GroupAckFailure{
			Offset: f.Offset, Error: *a.offer.Error(a.srv.failureOf(asGroupRefusal(f.Err))),
		})
	}
	return wire.AppendMessage(dst, &a.acked)
}

// appendRefusal words the failure of p. A publish's names its request; the
// others are `error`, which answers the oldest request of the stream.
func (a *answers) appendRefusal(dst []byte, p *owed) []byte {
	if p.form.publishes() && p.form != formAck {
		if reason, ok := refusedReason(p.err); ok {
			return a.appendRefused(dst, p, reason)
		}
	}
	switch p.form {
	case formAck:
		r := asRefusal(p.err)
		ack := a.offer.FailedAck(p.requestID, a.srv.failureOf(r))
		a.srv.nameOwner(&ack, a.offer, r)
		return ack.Append(dst)
	case formPublish:
		r := asRefusal(p.err)
		if reason, ok := a.srv.refusedOwner(r); ok && p.numbered {
			return a.appendRefused(dst, p, reason)
		}
		return wire.AppendMessage(dst, a.offer.PublishError(p.requestID, a.srv.failureOf(r)))
	case formPublishIf, formCommit:
		return wire.AppendMessage(dst, a.srv.refusalTo(a.offer, asRefusal(p.err)))
	case formSettled, formExtended, formAcked:
		return wire.AppendMessage(dst, a.srv.refusalTo(a.offer, asGroupRefusal(p.err)))
	default:
		return wire.AppendMessage(dst, a.srv.refusalTo(a.offer, asCacheRefusal(p.err)))
	}
}

// appendRefused answers publish_refused (wire 7.3). A client that does not
// know that a sequence can have been reused is told that its batch is held, as
// it was before the reason existed (wire 9.6).
func (a *answers) appendRefused(dst []byte, p *owed, reason wire.RefusedReason) []byte {
	if reason.Kind == wire.RefusedSequenceReused && !a.offer.Has(wire.FeatureSequenceReused) {
		a.publishOK = wire.PublishOK{RequestID: p.requestID}
		var refused *broker.RefusedError
		if errors.As(p.err, &refused) {
			a.publishOK.Offset = a.offer.AckOffset(refused.Verdict.First)
		}
		return wire.AppendMessage(dst, &a.publishOK)
	}
	return wire.AppendMessage(dst, &wire.PublishRefused{RequestID: p.requestID, Reason: reason, Message: p.err.Error()})
}
