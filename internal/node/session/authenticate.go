package session

import (
	"context"
	"errors"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// authenticate handles the first frame of a control stream. On false the
// stream ends; what was to be answered is in the replies.
func (s *control) authenticate(ctx context.Context) bool {
	hdr, payload, err := s.frames.Next()
	if err != nil {
		s.logEnd(err)
		return false
	}
	if hdr.Unknown() {
		s.refuse(invalidRequest("unsupported frame flags"))
		return false
	}
	if hdr.Flags != 0 {
		s.refuse(unauthenticated("auth required"))
		return false
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		return false
	}
	request, ok := m.(*wire.Auth)
	if !ok {
		s.refuse(unauthenticated(beforeAuth(m)))
		return false
	}
	// Error codes are negotiated before the token is looked at, so that even
	// a refused token can be refused with a code (wire 5.1).
	s.offer = request.Offer()
	if s.c.srv.draining.Load() {
		if s.offer.Has(wire.FeatureErrorCodes) {
			s.refuse(errDraining)
			return false
		}
		<-s.c.conn.Context().Done() // no answer until the connection closes
		return false
	}
	p, err := s.c.admit(ctx, request.Tenant, request.Token)
	if err != nil {
		s.c.srv.log.Debug("token refused", "peer", s.c.conn.RemoteAddr().String(), "tenant_id", request.Tenant, "error", err)
		s.refuse(unauthenticated("auth failed"))
		return false
	}
	s.principal = p
	s.identity = s.c.identify(p)
	s.routes = routes{srv: s.c.srv, principal: p}
	s.frames.admit(s.c.srv.cfg.MaxFrameBytes)
	s.answerAuth()
	return true
}

// beforeAuth words the refusal of a request that came first (wire 8.1).
func beforeAuth(m wire.Message) string {
	switch m.(type) {
	case *wire.Topology, *wire.StreamShards, *wire.CacheShards, *wire.ShardOwners:
		return "not authenticated"
	default:
		return "auth required"
	}
}

// admit verifies a token for this connection.
func (c *connection) admit(ctx context.Context, tenant, token string) (*auth.Principal, error) {
	m := c.srv.metrics.Connections
	p, err := c.srv.verify.Verify(ctx, tenant, token)
	if err != nil {
		var refused *auth.TokenError
		if errors.As(err, &refused) {
			m.AuthRefused(string(refused.Reason))
		}
		return nil, err
	}
	if c.srv.cfg.BindSubject {
		if err := bindSubject(p, c.conn.PeerCertificates()); err != nil {
			return nil, err
		}
	}
	c.authenticated.Store(true)
	m.Authenticated.Inc()
	return p, nil
}

// answerAuth grants what both sides know (wire 5).
func (s *control) answerAuth() {
	cfg := &s.c.srv.cfg
	if !s.offer.HasFlags {
		s.answer(&wire.OK{})
		return
	}
	ok := cfg.Offer.AuthOK(s.offer)
	ok.ListenerPorts = cfg.ListenerPorts
	if cfg.PublishWindow > 0 && s.offer.Pipelined() {
		ok.PublishWindow = wire.Some(uint32(cfg.PublishWindow))
		s.window = cfg.PublishWindow
	}
	if cfg.Storage && s.offer.Has(wire.FeatureConsumerGroup) {
		ok.GroupAckBatch = wire.MaxAckBatch
	}
	s.answer(ok)
}

// watchRights ends the stream's rights when those of its token end. Polls that
// wait end; an idle stream notices with its next request.
func (s *control) watchRights() (stop func()) {
	return s.c.srv.onRightsEnd(s.principal, func(why *refusal) {
		s.rights.end(why)
		s.polls.end(why)
	})
}
