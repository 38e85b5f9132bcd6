package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// InStream is the path of a stream.
type InStream struct {
	InNamespace
	Stream string `path:"stream"`
}

func (n InStream) key() model.StreamKey {
	return model.StreamKey{TenantID: n.TenantID, Namespace: n.Namespace, Stream: n.Stream}
}

type streamOut struct{ Body model.Stream }

// streamRoutes are those of control plane 4.4.
func (s *surface) streamRoutes() {
	const tag, base = "streams", "/v1/tenants/{tenant_id}/namespaces/{namespace}/streams"
	const one = base + "/{stream}"
	all := func(path params) rbac.Object {
		return rbac.Stream(path("tenant_id"), path("namespace"), rbac.Any)
	}
	allow := over(rbac.StreamManage, theStream)
	add(s, route{
		id: "list-streams", method: http.MethodGet, path: base, tag: tag, summary: "List the streams the caller manages",
		who: pathTenant, allow: somewhere(rbac.StreamManage, all), refuses: []int{http.StatusBadRequest, http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InNamespace
		Paging
	}) (*listOut[model.Stream], error) {
		all, err := s.o.Store.Streams(ctx, in.key())
		if err != nil {
			return nil, err
		}
		all = visible(callerOf(ctx), rbac.StreamManage, all, func(m model.Stream) rbac.Object {
			return rbac.Stream(m.TenantID, m.Namespace, m.Stream)
		})
		l, err := pageOf(all, in.Paging, func(m model.Stream) string { return m.Stream })
		return &listOut[model.Stream]{l}, err
	})
	add(s, route{
		id: "create-stream", method: http.MethodPost, path: base, tag: tag, summary: "Create a stream",
		who: pathTenant, allow: somewhere(rbac.StreamManage, all), hasBody: true, status: created,
		refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InNamespace
		Body CreateStreamRequest
	}) (*streamOut, error) {
		m, err := s.newStream(ctx, in.InNamespace, in.Body)
		if err != nil {
			return nil, err
		}
		if err := s.o.Store.CreateStream(ctx, m); err != nil {
			return nil, err
		}
		s.o.Observer.StreamChanged(model.Created)
		s.catalogChanged()
		return &streamOut{m}, nil
	})
	add(s, route{
		id: "get-stream", method: http.MethodGet, path: one, tag: tag, summary: "Get a stream",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *struct{ InStream }) (*streamOut, error) {
		m, err := s.o.Store.Stream(ctx, in.InStream.key())
		return &streamOut{m}, err
	})
	add(s, route{
		id: "patch-stream", method: http.MethodPatch, path: one, tag: tag, summary: "Change a stream",
		about: "A retention replaces both bounds. Kind, shards, replication factor, region and routing are fixed.",
		who:   pathTenant, allow: allow, hasBody: true, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InStream
		Body PatchStreamRequest
	}) (*streamOut, error) {
		patch, err := in.Body.patch()
		if err != nil {
			return nil, err
		}
		m, err := s.o.Store.PatchStream(ctx, in.InStream.key(), patch)
		if err != nil {
			return nil, err
		}
		s.o.Observer.StreamChanged(model.Updated)
		s.catalogChanged()
		return &streamOut{m}, nil
	})
	add(s, route{
		id: "delete-stream", method: http.MethodDelete, path: one, tag: tag, summary: "Delete a stream; brokers then remove its data",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct{ InStream }) (*noBody, error) {
		if err := s.o.Store.DeleteStream(ctx, in.InStream.key()); err != nil {
			return nil, err
		}
		s.o.Observer.StreamChanged(model.Deleted)
		s.catalogChanged()
		return nil, nil
	})
}
