package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// InCache is the path of a cache.
type InCache struct {
	InNamespace
	Cache string `path:"cache"`
}

func (n InCache) key() model.CacheKey {
	return model.CacheKey{TenantID: n.TenantID, Namespace: n.Namespace, Cache: n.Cache}
}

type cacheOut struct{ Body model.Cache }

// CreateCacheRequest makes a cache (control plane 4.5).
type CreateCacheRequest struct {
	Cache             string             `json:"cache"`
	DisplayName       string             `json:"display_name"`
	Shards            *uint32            `json:"shards" required:"false" maximum:"1024" doc:"Fixed at creation; 1 where it is absent or 0."`
	ReplicationFactor *uint32            `json:"replication_factor" required:"false" maximum:"32" doc:"1 where it is absent or 0."`
	Consistency       *model.Consistency `json:"consistency" required:"false" enum:"Leader,Quorum" doc:"Leader where it is absent."`
}

// PatchCacheRequest changes what may change of a cache.
type PatchCacheRequest struct {
	DisplayName *string `json:"display_name" required:"false"`
}

// newCache is the record of a request, if the caller may and all fits.
func (s *surface) newCache(ctx context.Context, in InNamespace, r CreateCacheRequest) (model.Cache, error) {
	if err := check(callerOf(ctx), rbac.CacheManage, rbac.Cache(in.TenantID, in.Namespace, r.Cache)); err != nil {
		return model.Cache{}, err
	}
	if err := s.name("cache", r.Cache); err != nil {
		return model.Cache{}, err
	}
	if err := displayName(r.DisplayName); err != nil {
		return model.Cache{}, err
	}
	m := model.Cache{
		TenantID: in.TenantID, Namespace: in.Namespace, Cache: r.Cache, DisplayName: r.DisplayName,
		Shards: atLeastOne(r.Shards), ReplicationFactor: atLeastOne(r.ReplicationFactor), Consistency: model.Leader,
	}
	if r.Consistency != nil {
		m.Consistency = *r.Consistency
	}
	var err error
	m.UID, err = s.newUID()
	return m, err
}

// cacheRoutes are those of control plane 4.5.
func (s *surface) cacheRoutes() {
	const tag, base = "caches", "/v1/tenants/{tenant_id}/namespaces/{namespace}/caches"
	const one = base + "/{cache}"
	all := func(path params) rbac.Object {
		return rbac.Cache(path("tenant_id"), path("namespace"), rbac.Any)
	}
	allow := over(rbac.CacheManage, theCache)
	add(s, route{
		id: "list-caches", method: http.MethodGet, path: base, tag: tag, summary: "List the caches the caller manages",
		who: pathTenant, allow: somewhere(rbac.CacheManage, all), refuses: []int{http.StatusBadRequest, http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InNamespace
		Paging
	}) (*listOut[model.Cache], error) {
		all, err := s.o.Store.Caches(ctx, in.key())
		if err != nil {
			return nil, err
		}
		all = visible(callerOf(ctx), rbac.CacheManage, all, func(m model.Cache) rbac.Object {
			return rbac.Cache(m.TenantID, m.Namespace, m.Cache)
		})
		l, err := pageOf(all, in.Paging, func(m model.Cache) string { return m.Cache })
		return &listOut[model.Cache]{l}, err
	})
	add(s, route{
		id: "create-cache", method: http.MethodPost, path: base, tag: tag, summary: "Create a cache",
		who: pathTenant, allow: somewhere(rbac.CacheManage, all), hasBody: true, status: created,
		refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InNamespace
		Body CreateCacheRequest
	}) (*cacheOut, error) {
		m, err := s.newCache(ctx, in.InNamespace, in.Body)
		if err != nil {
			return nil, err
		}
		if err := s.o.Store.CreateCache(ctx, m); err != nil {
			return nil, err
		}
		s.o.Observer.CacheChanged(model.Created)
		s.catalogChanged()
		return &cacheOut{m}, nil
	})
	add(s, route{
		id: "get-cache", method: http.MethodGet, path: one, tag: tag, summary: "Get a cache",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *struct{ InCache }) (*cacheOut, error) {
		m, err := s.o.Store.Cache(ctx, in.InCache.key())
		return &cacheOut{m}, err
	})
	add(s, route{
		id: "patch-cache", method: http.MethodPatch, path: one, tag: tag, summary: "Change a cache",
		who: pathTenant, allow: allow, hasBody: true, refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InCache
		Body PatchCacheRequest
	}) (*cacheOut, error) {
		if in.Body.DisplayName != nil {
			if err := displayName(*in.Body.DisplayName); err != nil {
				return nil, err
			}
		}
		m, err := s.o.Store.PatchCache(ctx, in.InCache.key(), model.CachePatch(in.Body))
		if err != nil {
			return nil, err
		}
		s.o.Observer.CacheChanged(model.Updated)
		s.caches.kick()
		return &cacheOut{m}, nil
	})
	add(s, route{
		id: "delete-cache", method: http.MethodDelete, path: one, tag: tag, summary: "Delete a cache; brokers then remove its data",
		who: pathTenant, allow: allow, refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct{ InCache }) (*noBody, error) {
		if err := s.o.Store.DeleteCache(ctx, in.InCache.key()); err != nil {
			return nil, err
		}
		s.o.Observer.CacheChanged(model.Deleted)
		s.catalogChanged()
		return nil, nil
	})
}
