package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// ResourcesRequest makes streams and caches of one namespace, all or none
// (control plane 4.11).
type ResourcesRequest struct {
	Streams []CreateStreamRequest `json:"streams" required:"false" maxItems:"1000"`
	Caches  []CreateCacheRequest  `json:"caches" required:"false" maxItems:"1000"`
}

// Resources are streams and caches that were made together.
type Resources struct {
	Streams []model.Stream `json:"streams"`
	Caches  []model.Cache  `json:"caches"`
}

func (s *surface) resourceRoutes() {
	add(s, route{
		id: "create-resources", method: http.MethodPost, path: "/v1/tenants/{tenant_id}/namespaces/{namespace}/resources",
		tag: "streams", summary: "Create streams and caches, all or none",
		who: pathTenant, hasBody: true, status: created, refuses: []int{http.StatusNotFound, http.StatusConflict},
		allow: anyOf(
			somewhere(rbac.StreamManage, func(path params) rbac.Object {
				return rbac.Stream(path("tenant_id"), path("namespace"), rbac.Any)
			}),
			somewhere(rbac.CacheManage, func(path params) rbac.Object {
				return rbac.Cache(path("tenant_id"), path("namespace"), rbac.Any)
			}),
		),
	}, func(ctx context.Context, in *struct {
		InNamespace
		Body ResourcesRequest
	}) (*struct{ Body Resources }, error) {
		made := Resources{Streams: []model.Stream{}, Caches: []model.Cache{}}
		for _, r := range in.Body.Streams {
			m, err := s.newStream(ctx, in.InNamespace, r)
			if err != nil {
				return nil, err
			}
			made.Streams = append(made.Streams, m)
		}
		for _, r := range in.Body.Caches {
			m, err := s.newCache(ctx, in.InNamespace, r)
			if err != nil {
				return nil, err
			}
			made.Caches = append(made.Caches, m)
		}
		if len(made.Streams)+len(made.Caches) == 0 {
			return nil, invalid("streams, caches: both are empty; name at least one to create")
		}
		if err := s.o.Store.CreateResources(ctx, in.key(), made.Streams, made.Caches); err != nil {
			return nil, err
		}
		for range made.Streams {
			s.o.Observer.StreamChanged(model.Created)
		}
		for range made.Caches {
			s.o.Observer.CacheChanged(model.Created)
		}
		s.catalogChanged()
		return &struct{ Body Resources }{made}, nil
	})
}
