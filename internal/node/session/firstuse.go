package session

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/wire"
)

// A Creator makes a stream or cache where the catalog is kept, for its first use
// here, and returns once this node serves it. One that is there already is no
// error; a namespace that is not there is a [*broker.NotFoundError].
type Creator func(ctx context.Context, kind broker.Kind, name broker.StreamName) error

// createTimeout bounds a [Creator].
const createTimeout = 5 * time.Second

// A firstUse is a stream or cache that a client names and nobody has made.
type firstUse struct {
	names broker.StreamName
	there func() bool  // somebody else was quicker
	add   func() error // have the broker serve it
}

// create lets a missing stream or cache appear, if the node allows that, its
// namespace is known, and the limit is not reached. What could not be added
// does not count. One appears at a time.
func (s *Server) create(missing *broker.NotFoundError, f firstUse) error {
	if !s.cfg.AutoCreate || (missing.Kind != broker.KindStream && missing.Kind != broker.KindCache) {
		return missing
	}
	s.creating.Lock()
	defer s.creating.Unlock()
	if f.there() {
		return nil
	}
	if s.created >= s.cfg.AutoCreateLimit {
		return refuse(wire.CodeLimitExceeded, "too many streams and caches created on first use; create them in the catalog or raise auto_create_limit")
	}
	if err := s.appear(missing.Kind, f); err != nil {
		return err
	}
	s.created++
	s.log.Info("created on first use", "kind", missing.Kind, "tenant_id", f.names.Tenant, "namespace", f.names.Namespace, "name", f.names.Name)
	return nil
}

// appear makes what is used first: where the catalog is kept, or else here.
func (s *Server) appear(kind broker.Kind, f firstUse) error {
	if s.cfg.Create != nil {
		ctx, cancel := context.WithTimeout(s.drained, createTimeout)
		defer cancel()
		err := s.cfg.Create(ctx, kind, f.names)
		var missing *broker.NotFoundError
		if errors.As(err, &missing) {
			return missing
		}
		if err != nil {
			s.log.Warn("not created on first use", "kind", kind, "name", f.names, "error", err)
			return refuse(wire.CodeNotFound, string(kind)+" not found, and it could not be created on first use just now")
		}
		return nil
	}
	err := f.add()
	var conflict *broker.ConflictError
	if errors.As(err, &conflict) {
		return nil // somebody else was quicker, with options of their own
	}
	return err
}
