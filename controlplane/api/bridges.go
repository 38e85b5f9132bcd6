package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// BridgeRequest lets streams of one region have copies in another.
type BridgeRequest struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

// CheckBridge says why a pair of regions is no bridge.
func CheckBridge(b model.Bridge) error {
	for field, region := range map[string]string{"source": b.Source, "destination": b.Destination} {
		if what := regionProblem(region); what != "" {
			return invalid("%s: %s", field, what)
		}
	}
	if b.Source == b.Destination {
		return invalid("destination: the same as source; a region reaches itself")
	}
	return nil
}

// bridgeRoutes are the bridges between regions as a stored resource (control
// plane 3.2).
func (s *surface) bridgeRoutes() {
	const tag, base = "bridges", "/v1/bridges"
	add(s, route{
		id: "list-bridges", method: http.MethodGet, path: base, tag: tag, summary: "List the bridges between regions",
		who: anyTenant, allow: inCluster(rbac.NodeView), refuses: []int{http.StatusBadRequest},
	}, func(ctx context.Context, in *struct{ Paging }) (*listOut[model.Bridge], error) {
		all, err := s.o.Store.Bridges(ctx)
		if err != nil {
			return nil, err
		}
		l, err := pageOf(all, in.Paging, func(b model.Bridge) string { return joined(b.Source, b.Destination) })
		return &listOut[model.Bridge]{l}, err
	})
	add(s, route{
		id: "put-bridge", method: http.MethodPost, path: base, tag: tag, summary: "Let streams of a region have copies in another",
		who: anyTenant, allow: inCluster(rbac.TenantManage), hasBody: true, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct{ Body BridgeRequest }) (*noBody, error) {
		b := model.Bridge(in.Body)
		if err := CheckBridge(b); err != nil {
			return nil, err
		}
		err := s.o.Store.PutBridge(ctx, b)
		s.o.Planner.Wake()
		return nil, err
	})
	add(s, route{
		id: "delete-bridge", method: http.MethodDelete, path: base + "/{source}/{destination}", tag: tag, summary: "Take a bridge away",
		who: anyTenant, allow: inCluster(rbac.TenantManage), refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct {
		Source      string `path:"source"`
		Destination string `path:"destination"`
	}) (*noBody, error) {
		err := s.o.Store.DeleteBridge(ctx, model.Bridge{Source: in.Source, Destination: in.Destination})
		s.o.Planner.Wake()
		return nil, err
	})
}
