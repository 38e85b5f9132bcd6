package session

import (
	"time"

	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/wire"
)

// The reasons of refusals of shards that are not served here (wire 16.2).
const (
	reasonNotAssigned = "not_assigned"
	reasonMoving      = "moving"

	movingRetry = 100 * time.Millisecond
)

// notServed refuses a request to a shard that is not served here. Nothing was
// done.
func notServed(e *placed.NotServedError) *refusal {
	r := refuse(wire.CodeShardUnavailable, e.Error())
	r.unserved = e
	switch e.Reason {
	case placed.Moving:
		r.Detail = wire.Detail{Reason: reasonMoving, RetryAfterMS: milliseconds(movingRetry)}
	case placed.Unreplicated:
		r.Detail.Reason = reasonFailed
	default:
		r.Detail.Reason = reasonNotAssigned
	}
	return r
}

// located is the broker to ask instead, where a request was refused because its
// shard is not served here and it is known who serves it; false otherwise.
func (s *Server) located(r *refusal) (Owner, bool) {
	if r.unserved == nil || r.unserved.Reason == placed.Unreplicated {
		return Owner{}, false
	}
	return s.elsewhere(r.unserved.Shard)
}

// refusalTo is `not_leader` where another broker serves what was asked for, and
// `error` otherwise (wire 15).
func (s *Server) refusalTo(offer wire.Offer, r *refusal) wire.Message {
	if owner, ok := s.located(r); ok {
		return offer.NotLeader(owner.notLeader())
	}
	return offer.Error(r.Failure)
}

// failureOf is the failure of a refusal where only a code can be told, and not
// whom to ask.
func (s *Server) failureOf(r *refusal) wire.Failure {
	owner, ok := s.located(r)
	if !ok {
		return r.Failure
	}
	message := "not the leader of this shard; it is " + owner.NodeID
	if owner.Addr != "" {
		message += " at " + owner.Addr
	}
	return refuse(wire.CodeNotLeader, message).Failure
}

// nameOwner adds to a refused binary ack whom to ask, for a client that reads
// it.
func (s *Server) nameOwner(ack *wire.Ack, offer wire.Offer, r *refusal) {
	if owner, ok := s.located(r); ok && offer.HasFlag(wire.FlagAckOwner) {
		ack.HasOwner, ack.OwnerNode, ack.OwnerAddr, ack.OwnerGeneration = true, owner.NodeID, owner.Addr, owner.Generation
	}
}

// refusedOwner is the reason of publish_refused for a numbered batch whose shard
// another broker serves (wire 9.6).
func (s *Server) refusedOwner(r *refusal) (wire.RefusedReason, bool) {
	owner, ok := s.located(r)
	return wire.RefusedReason{Kind: wire.RefusedNotLeader, NodeID: owner.NodeID, Addr: optText(owner.Addr)}, ok
}

// unserved ends an event stream whose shard is not served here any more: by
// `shard_moved` for a client that reads it, and `error` for others (wire 10, 11,
// 15). from is the first offset not delivered.
func (e *eventStream) unserved(err *placed.NotServedError, from wire.Optional[uint64]) {
	if err.Reason != placed.Moving || !e.offer.Has(wire.FeatureShardMoved) {
		e.last(e.offer.Error(notServed(err).Failure))
		return
	}
	moved := &wire.ShardMoved{SubscriptionID: e.id, ResumeFrom: from, Generation: err.Generation}
	if owner, ok := e.c.srv.elsewhere(err.Shard); ok {
		moved.NodeID, moved.Addr = wire.Some(owner.NodeID), optText(owner.Addr)
		moved.Generation = max(moved.Generation, owner.Generation)
	}
	e.last(moved)
}
