package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/planner"
	"github.com/felixlog/felix/controlplane/rbac"
)

// moveRefusal is the answer to what the planner refuses (control plane 8.7).
func moveRefusal(err error) (*Error, bool) {
	r, ok := errors.AsType[*planner.MoveRefusal](err)
	if !ok {
		return nil, false
	}
	return &Error{Status: r.Status, Code: r.Code, Message: r.Message}, true
}

// StartMoveRequest moves a shard to a node.
type StartMoveRequest struct {
	ShardKeyRequest
	Destination string `json:"destination"`
	DryRun      bool   `json:"dry_run" required:"false" doc:"Say what would be done, and do nothing."`
}

// inShard is the path of a shard and its kind.
type inShard struct {
	TenantID  string          `path:"tenant_id"`
	Namespace string          `path:"namespace"`
	Name      string          `path:"name"`
	Shard     uint32          `path:"shard"`
	Kind      model.ShardKind `query:"kind" enum:"stream,cache" default:"stream"`
}

func (n inShard) key() model.ShardKey {
	return model.ShardKey{TenantID: n.TenantID, Namespace: n.Namespace, Stream: n.Name, Shard: n.Shard, Kind: n.Kind}
}

type moveOut struct{ Body planner.MoveResult }

// moveRoutes are those of control plane 4.8 about moves.
func (s *surface) moveRoutes() {
	const tag = "placement"
	refuses := []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict}
	add(s, route{
		id: "list-shard-moves", method: http.MethodGet, path: "/v1/shard-moves", tag: tag, summary: "List the moves under way",
		who: anyTenant, allow: inCluster(rbac.NodeView),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body planner.MovesView }, error) {
		v, err := s.o.Planner.Moves(ctx)
		return &struct{ Body planner.MovesView }{v}, err
	})
	add(s, route{
		id: "start-shard-move", method: http.MethodPost, path: "/v1/shard-moves", tag: tag, summary: "Move a shard to a broker",
		who: anyTenant, allow: inCluster(rbac.NodeManage), hasBody: true, refuses: refuses,
	}, func(ctx context.Context, in *struct{ Body StartMoveRequest }) (*moveOut, error) {
		r, err := s.o.Planner.StartMove(ctx, in.Body.key(), in.Body.Destination, in.Body.DryRun)
		if err == nil && !in.Body.DryRun {
			s.assignments.kick()
		}
		return &moveOut{r}, err
	})
	add(s, route{
		id: "cancel-shard-move", method: http.MethodDelete, path: "/v1/shard-moves/{tenant_id}/{namespace}/{name}/{shard}",
		tag: tag, summary: "Take a move back", who: anyTenant, allow: inCluster(rbac.NodeManage), refuses: refuses,
	}, func(ctx context.Context, in *inShard) (*moveOut, error) {
		r, err := s.o.Planner.CancelMove(ctx, in.key())
		s.assignments.kick()
		return &moveOut{r}, err
	})
	add(s, route{
		id: "abandon-shard", method: http.MethodPost, path: "/v1/placement/abandon/{tenant_id}/{namespace}/{name}/{shard}",
		tag: tag, summary: "Give up the log of a shard that nobody can serve",
		about: "The shard is then placed anew and empty. What its log held is lost to clients.",
		who:   anyTenant, allow: inCluster(rbac.NodeManage), refuses: refuses,
	}, func(ctx context.Context, in *inShard) (*moveOut, error) {
		r, err := s.o.Planner.Abandon(ctx, in.key())
		s.assignments.kick()
		return &moveOut{r}, err
	})
}
