package session

import (
	"context"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// An ingest serves a unidirectional stream of the client: auth, then only
// publishes nobody waits for. It has no way to answer, so every irregularity
// ends the stream (wire 2.3, 19). A stream that ends after its auth has
// announced the connection and is done.
type ingest struct {
	c         *connection
	stream    transport.ReceiveStream
	frames    *frames
	principal *auth.Principal
	identity  *identity
	routes    routes
	rights    rights
}

func newIngest(c *connection, st transport.ReceiveStream) *ingest {
	return &ingest{c: c, stream: st, frames: newFrames(st, c.srv)}
}

func (s *ingest) serve(ctx context.Context) {
	defer s.stream.CancelRead(codeNone)
	leave, ok := s.c.enterPreauth(ctx)
	if !ok {
		return
	}
	ok = s.authenticate(ctx)
	leave()
	if !ok {
		return
	}
	defer s.c.forget(s.identity)
	stop := s.c.srv.onRightsEnd(s.principal, func(why *refusal) {
		s.rights.end(why)
		s.stream.CancelRead(codeNone)
	})
	defer stop()
	for {
		hdr, payload, err := s.frames.Next()
		if err != nil || s.rights.ended() != nil || !s.publish(ctx, hdr, payload) {
			return
		}
	}
}

func (s *ingest) authenticate(ctx context.Context) bool {
	hdr, payload, err := s.frames.Next()
	if err != nil || hdr.Flags != 0 || s.c.srv.draining.Load() {
		return false
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		return false
	}
	request, ok := m.(*wire.Auth)
	if !ok {
		return false
	}
	p, err := s.c.admit(ctx, request.Tenant, request.Token)
	if err != nil {
		return false
	}
	s.principal = p
	s.identity = s.c.identify(p)
	s.routes = routes{srv: s.c.srv, principal: p}
	s.frames.admit(s.c.srv.cfg.MaxFrameBytes)
	return true
}

// publish serves one frame and says whether the stream goes on.
func (s *ingest) publish(ctx context.Context, hdr wire.Header, payload []byte) bool {
	if hdr.Flags == 0 {
		return s.publishMessage(ctx, payload)
	}
	var p wire.Publish
	if hdr.Unknown() || !hdr.Flags.Has(wire.FlagPublishBatch) || wire.ParsePublish(hdr.Flags, payload, &p) != nil || p.Acked {
		return false
	}
	return s.send(ctx, s.routes.resolve(&p), p.Key, p.Keyed, p.Block)
}

func (s *ingest) publishMessage(ctx context.Context, payload []byte) bool {
	m, err := wire.ParseMessage(payload)
	if err != nil {
		return false
	}
	j, ok := jsonPublishOf(m)
	if !ok {
		return false
	}
	s.c.srv.countJSON(j)
	return s.send(ctx, s.c.srv.routeTo(s.principal, j.tenant, j.namespace, j.stream), j.key.Value, j.key.Set, j.block)
}

func (s *ingest) send(ctx context.Context, r *route, key []byte, keyed bool, block wire.Block) bool {
	if r.refused != nil {
		s.c.srv.metrics.Publish.Dropped.Inc()
		return r.refused.Code == wire.CodeNotFound
	}
	batch := broker.Batch{Count: block.Count(), PayloadBytes: block.PayloadBytes(), Block: block}
	sh := r.shard(key, keyed)
	if s.c.srv.cfg.RecordPublishers && sh.Durable() {
		batch.Publisher = publisherOf(s.principal)
	}
	publishUnacked(ctx, s.c.srv, s.identity, sh, batch, unackedPolicy(s.c.srv))
	return true
}
