package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/planner"
	"github.com/felixlog/felix/controlplane/rbac"
)

// PausedResponse says whether moves are kept from starting (control plane 8.8).
type PausedResponse struct {
	Paused bool `json:"paused"`
}

type pausedOut struct{ Body PausedResponse }

// placementRoutes are those of control plane 4.8 about placement as a whole.
func (s *surface) placementRoutes() {
	const tag = "placement"
	add(s, route{
		id: "placement-plan", method: http.MethodGet, path: "/v1/placement/plan", tag: tag, summary: "What a placement pass would do now",
		about: "Shards that stay as they are, are left out.", who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body planner.PlanView }, error) {
		v, err := s.o.Planner.Plan(ctx)
		return &struct{ Body planner.PlanView }{v}, err
	})
	add(s, route{
		id: "placement-replication", method: http.MethodGet, path: "/v1/placement/replication", tag: tag, summary: "Which shards lack copies",
		who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body planner.ReplicationView }, error) {
		v, err := s.o.Planner.Replication(ctx)
		return &struct{ Body planner.ReplicationView }{v}, err
	})
	s.pauseRoute("pause", "Keep moves from starting", true)
	s.pauseRoute("resume", "Let moves start", false)
}

func (s *surface) pauseRoute(verb, summary string, paused bool) {
	add(s, route{
		id: "placement-" + verb, method: http.MethodPost, path: "/v1/placement/" + verb, tag: "placement", summary: summary,
		about: "New shards are placed and failed leaders replaced either way.", who: anyTenant, allow: inCluster(rbac.NodeManage),
	}, func(ctx context.Context, _ *struct{}) (*pausedOut, error) {
		return &pausedOut{PausedResponse{paused}}, s.o.Planner.Pause(ctx, paused)
	})
}
