package session

import (
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// A route is what one client stream knows about one Felix stream: whether it
// may publish there, and the handles of its shards.
type route struct {
	refused *refusal // set: the answer to every publish there
	stream  *stream.Stream
	routing wire.Routing
}

// shard is the handle a publish with this key goes to (wire 14).
func (r *route) shard(key []byte, keyed bool) *stream.Shard {
	return r.stream.Shard(wire.ShardOf(key, keyed, r.stream.Shards(), r.routing))
}

// routes caches the decisions of one client stream, keyed by the names as
// they stand in the frame. The last one used is kept apart: a publisher
// rarely changes its mind.
type routes struct {
	srv       *Server
	principal *auth.Principal
	last      *route
	lastNames string
	byNames   map[string]*route
	key       []byte // scratch for names
}

// maxRoutes bounds the cache; a client that names more starts over.
const maxRoutes = 256

// resolve finds the route for the names of p. A removed stream's route is
// looked up anew; a failed look-up is not kept, as the stream may appear.
func (r *routes) resolve(p *wire.Publish) *route {
	names := r.names(p)
	if r.last != nil && string(names) == r.lastNames && r.last.alive() {
		return r.last
	}
	if hit := r.byNames[string(names)]; hit != nil && hit.alive() {
		r.last, r.lastNames = hit, string(names)
		return hit
	}
	found := r.srv.routeTo(r.principal, string(p.Tenant), string(p.Namespace), string(p.Stream))
	if found.refused != nil && found.refused.Code == wire.CodeNotFound {
		return found
	}
	if len(r.byNames) >= maxRoutes || r.byNames == nil {
		r.byNames = make(map[string]*route)
	}
	r.last, r.lastNames = found, string(names)
	r.byNames[r.lastNames] = found
	return found
}

// names joins the names of p as the cache's key; they cannot contain a slash
// once they are known to be valid.
func (r *routes) names(p *wire.Publish) []byte {
	r.key = append(append(append(append(append(r.key[:0], p.Tenant...), '/'), p.Namespace...), '/'), p.Stream...)
	return r.key
}

func (r *route) alive() bool { return r.refused != nil || r.stream.Active() }

// routeTo authorises and resolves in the order a refusal is to be worded:
// tenant, grammar of the names, permission, existence (wire 8.1).
func (s *Server) routeTo(p *auth.Principal, tenant, namespace, name string) *route {
	if tenant != p.Tenant {
		return &route{refused: errTenant}
	}
	if err := validNames("stream", namespace, name); err != nil {
		return &route{refused: asRefusal(err)}
	}
	if !p.Grants.CanPublish(namespace, name) {
		return &route{refused: errForbidden}
	}
	st, err := s.stream(tenant, namespace, name)
	if err != nil {
		return &route{refused: asRefusal(err)}
	}
	return &route{stream: st, routing: wire.Routing(st.Options().Routing)}
}

// stream finds a registered stream. On a node that creates on first use, a
// stream in a known namespace appears here, within a limit; it is durable where
// there is storage.
func (s *Server) stream(tenant, namespace, name string) (*stream.Stream, error) {
	st, err := s.broker.Stream(tenant, namespace, name)
	var missing *broker.NotFoundError
	if err == nil || !errors.As(err, &missing) {
		return st, err
	}
	full := broker.StreamName{Tenant: tenant, Namespace: namespace, Name: name}
	err = s.create(missing, firstUse{
		names: full,
		there: func() bool { _, err := s.broker.Stream(tenant, namespace, name); return err == nil },
		add:   func() error { return s.broker.AddStream(full, broker.StreamOptions{Durable: s.cfg.Storage}) },
	})
	if err != nil {
		return nil, err
	}
	return s.broker.Stream(tenant, namespace, name)
}

// validNames applies the one grammar of names at this door (decision 9). The
// tenant's is that of a verified token.
func validNames(kind, namespace, name string) error {
	if err := wire.ValidateName("namespace", namespace); err != nil {
		return invalidRequest(err.Error())
	}
	if err := wire.ValidateName(kind, name); err != nil {
		return invalidRequest(err.Error())
	}
	return nil
}
