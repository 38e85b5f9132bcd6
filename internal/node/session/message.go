package session

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// message serves one JSON request (wire 7).
func (s *control) message(ctx context.Context, payload []byte) verdict {
	m, err := s.decode.Decode(payload)
	if err != nil {
		return finish // no answer: nothing in it can be trusted (wire 19)
	}
	switch m := m.(type) {
	case *wire.CacheGet, *wire.CachePut, *wire.CacheDelete, *wire.CachePutIf, *wire.CacheDeleteIf:
		return s.cacheRequest(ctx, m)
	case *wire.JSONPublish, *wire.JSONPublishBatch:
		j, _ := jsonPublishOf(m)
		return s.publishJSON(ctx, j)
	case *wire.PublishIdempotent:
		return s.publishIdempotent(ctx, m)
	case *wire.ProducerInit:
		s.awaitTurn(ctx)
		return s.producerInit(m)
	case *wire.Subscribe:
		return s.subscribe(ctx, m)
	case *wire.StreamShards, *wire.CacheShards, *wire.ShardOwners, *wire.Topology:
		s.awaitTurn(ctx)
		return s.discover(m)
	}
	if s.c.srv.cfg.Storage {
		if v, ok := s.logMessage(ctx, m); ok {
			return v
		}
	}
	s.awaitTurn(ctx)
	switch m := m.(type) {
	case *wire.Unknown:
		return s.unsupported(s.offer.Unsupported(m))
	case *wire.Extension:
		return s.unsupported(s.offer.UnsupportedExtension(m))
	case *wire.Auth:
		s.refuse(invalidRequest("auth already established"))
		return finish
	case *wire.Error:
		return finish // silently (wire 8.1)
	}
	if id, ok := unserved(m); ok {
		return s.unsupported(&wire.Unsupported{RequestType: m.MessageType(), RequestID: id}, s.offer.Has(wire.FeatureUnsupported))
	}
	s.refuse(invalidRequest("unexpected message type"))
	return finish
}

// unsupported answers a request this node does not serve, to a client that
// reads the answer; any other client's stream ends (wire 19).
func (s *control) unsupported(u *wire.Unsupported, understood bool) verdict {
	if !understood {
		return finish
	}
	s.answer(u)
	return goOn
}

// logMessage serves the requests that need a log; a node in memory does not
// advertise them.
func (s *control) logMessage(ctx context.Context, m wire.Message) (v verdict, served bool) {
	switch m := m.(type) {
	case *wire.CounterAdd, *wire.CounterGet:
		return s.cacheRequest(ctx, m), true
	case *wire.CacheWatch:
		return s.cacheWatch(ctx, m), true
	case *wire.PublishIf:
		return s.publishIf(ctx, m), true
	case *wire.Commit:
		return s.commit(ctx, m), true
	case *wire.StateGet:
		return s.stateGet(ctx, m), true
	case *wire.StreamRead:
		return s.streamRead(ctx, m), true
	case *wire.OffsetForTime:
		return s.offsetForTime(ctx, m), true
	case *wire.GroupPoll, *wire.GroupAck, *wire.GroupAckBatch, *wire.GroupNack, *wire.GroupExtend, *wire.GroupDeadLetter, *wire.GroupDeadLetters,
		*wire.GroupDiscard, *wire.GroupRedrive, *wire.GroupSeek, *wire.GroupDescribe, *wire.GroupDelete:
		return s.groupRequest(ctx, m), true
	}
	return goOn, false
}

// unserved recognises the requests of the protocol that this node does not
// serve and therefore does not advertise. Everything else a client may not
// send.
func unserved(m wire.Message) (requestID wire.Optional[uint64], ok bool) {
	switch m := m.(type) {
	case *wire.PublishIf:
		return wire.Some(m.RequestID), true
	case *wire.CacheWatch:
		return requestID, true
	case *wire.CounterAdd:
		return wire.Some(m.RequestID), true
	case *wire.CounterGet:
		return wire.Some(m.RequestID), true
	case *wire.Commit:
		return wire.Some(m.RequestID), true
	case *wire.StateGet:
		return wire.Some(m.RequestID), true
	case *wire.OffsetForTime:
		return wire.Some(m.RequestID), true
	case *wire.StreamRead:
		return wire.Some(m.RequestID), true
	case *wire.GroupPoll:
		return wire.Some(m.RequestID), true
	case *wire.GroupAck:
		return wire.Some(m.RequestID), true
	case *wire.GroupAckBatch:
		return wire.Some(m.RequestID), true
	case *wire.GroupNack:
		return wire.Some(m.RequestID), true
	case *wire.GroupExtend:
		return wire.Some(m.RequestID), true
	case *wire.GroupDeadLetter:
		return wire.Some(m.RequestID), true
	case *wire.GroupDeadLetters:
		return wire.Some(m.RequestID), true
	case *wire.GroupDiscard:
		return wire.Some(m.RequestID), true
	case *wire.GroupRedrive:
		return wire.Some(m.RequestID), true
	case *wire.GroupSeek:
		return wire.Some(m.RequestID), true
	case *wire.GroupDescribe:
		return wire.Some(m.RequestID), true
	case *wire.GroupDelete:
		return wire.Some(m.RequestID), true
	case *wire.ShardInspect:
		return wire.Some(m.RequestID), true
	case *wire.SubscriptionsList:
		return wire.Some(m.RequestID), true
	}
	return requestID, false
}
