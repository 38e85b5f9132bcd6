package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// assignmentRoutes is the list of control plane 4.7; the feed is with the
// others.
func (s *surface) assignmentRoutes() {
	add(s, route{
		id: "list-shard-assignments", method: http.MethodGet, path: "/v1/shard-assignments", tag: "shards",
		summary: "List who serves what", who: anyTenant, allow: inCluster(rbac.NodeView), refuses: []int{http.StatusBadRequest},
	}, func(ctx context.Context, in *struct {
		Leader string `query:"leader" doc:"Only what this node leads."`
		Paging
	}) (*listOut[model.Assignment], error) {
		all, err := s.o.Store.Assignments(ctx)
		if err != nil {
			return nil, err
		}
		if in.Leader != "" {
			led := all[:0]
			for _, m := range all {
				if m.Leader == in.Leader {
					led = append(led, m)
				}
			}
			all = led
		}
		l, err := pageOf(all, in.Paging, func(m model.Assignment) string {
			return joined(m.TenantID, m.Namespace, m.Stream, fmt.Sprintf("%010d", m.Shard), string(m.Kind))
		})
		return &listOut[model.Assignment]{l}, err
	})
}
